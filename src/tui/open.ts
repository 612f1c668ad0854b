import { join } from "node:path"
import { ProcessTerminal, type RgbColor, type Terminal } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import { userDirectory } from "../config/location.ts"
import { defaultDataDirectory } from "../engine/data-directory.ts"
import { homeDirectory } from "../util/paths.ts"
import { type App, type AppOptions, createApp, type LeaveReason, type SessionDefaults } from "./app.ts"
import { openHistory } from "./history.ts"
import { loadKeys } from "./keybindings.ts"
import type { WrittenInput } from "./prompt-editor.ts"
import { createScreen, type Screen } from "./screen.ts"
import type { StartScreen } from "./start-screen.ts"
import type { StatusSource } from "./status-line.ts"
import { builtInTheme, colorDepth } from "./theme.ts"
import { openThemes } from "./theme-file.ts"

/** Options for {@link openTerminal}. */
export interface TerminalOptions {
  api: TackleApi
  /** Whether the engine runs on a server. Default: false. */
  isRemote?: boolean
  /** Session to continue. Undefined starts a new session with the first prompt. */
  session?: SessionApi
  /** Prompt to send when the interface starts. */
  prompt?: string
  /** Screen that is shown until the interface is ready. */
  start?: StartScreen
  /**
   * Subscribes to text from tools and to warnings from the engine. The interface shows this text in the conversation.
   */
  notices?(listener: (text: string) => void): void
  defaults?: SessionDefaults
  fullscreen?: boolean
  /** Lines above an empty conversation. */
  welcome?: readonly string[]
  /** Settings for the status line. */
  status: StatusSource
  /** Signal that closes the interface, for example because of SIGTERM. */
  signal: AbortSignal
  env: Readonly<Record<string, string | undefined>>
  /** Terminal to use. Default: the terminal of this process. */
  terminal?: Terminal
}

/**
 * Opens the interactive interface on the terminal. Resolves with the id of the open session, or undefined if none is
 * open, when the user quits or the signal aborts. Always restores the terminal, even if the interface fails.
 */
export async function openTerminal(options: TerminalOptions): Promise<string | undefined> {
  const { session, prompt, env, fullscreen = false } = options
  const depth = colorDepth(env)
  const files = userFiles(env)
  const [{ keys, problems }, history] = await Promise.all([
    loadKeys(files.keybindings),
    openHistory(files.history),
  ])
  const themes = openThemes({ directory: files.themes, choice: files.theme }, depth)
  const chosen = await themes.chosen()
  if (chosen && "problem" in chosen) problems.push(chosen.problem)
  const own = chosen && "theme" in chosen ? chosen.theme : undefined
  const shared = { theme: own ?? builtInTheme("dark", depth), themes, keys, history }
  const { sent = [], draft = "" } = options.start?.end() ?? {}
  let shown: Shown = {
    ...{ session, prompts: [prompt ?? [], sent].flat(), draft: { text: draft, files: [] } },
    ...{ fullscreen, notice: problems.join("\n") },
  }
  for (;;) {
    const left = await showOnce(options, shared, shown)
    if (left.reason === "leave") return left.session?.id
    // The other screen mode needs another renderer. The session and the text in the editor are kept.
    shown = { ...left, fullscreen: !shown.fullscreen }
  }
}

/** Content of the interface when it opens. */
interface Shown {
  session: SessionApi | undefined
  prompts?: readonly string[]
  draft: WrittenInput
  drawn?: ReturnType<Screen["stop"]>
  fullscreen: boolean
  notice?: string
}

/** The reason why the interface closed, and what it showed then. */
interface Left {
  reason: LeaveReason
  session: SessionApi | undefined
  draft: WrittenInput
  drawn: ReturnType<Screen["stop"]>
}

/** Shows the interface until the user quits or changes the screen mode. */
async function showOnce(
  { api, isRemote, signal, env, terminal, notices, defaults = {}, welcome = [], status }: TerminalOptions,
  shared: Pick<AppOptions, "theme" | "keys" | "history" | "themes">,
  { session, prompts = [], draft, drawn, fullscreen, notice = "" }: Shown,
): Promise<Left> {
  const screen = createScreen(terminal ?? new ProcessTerminal(), { fullscreen, drawn })
  const { promise: left, resolve: leave } = Promise.withResolvers<LeaveReason>()
  const app = createApp({
    ...{ api, isRemote, screen, env, session, defaults, welcome, status, draft, ...shared },
    onLeave: leave,
  })
  if (notice !== "") app.notify(notice)
  notices?.(app.addNote)
  const onAbort = () => leave("leave")
  signal.addEventListener("abort", onAbort, { once: true })
  const restore = () => screen.stop()
  // Runs before Node prints the error of a crash.
  process.on("uncaughtExceptionMonitor", restore)
  process.on("exit", restore)
  screen.start()
  void useBackground(screen, shared, app)
  try {
    if (session) await app.open(session)
    for (const prompt of prompts) await app.send(prompt)
    const reason = signal.aborted ? "leave" : await left
    const draft = app.draft()
    if (reason === "leave") screen.removeBottom()
    return {
      ...{ reason, session: app.session, draft },
      drawn: screen.stop({ keep: reason === "screen" }),
    }
  } finally {
    app.close()
    screen.stop()
    signal.removeEventListener("abort", onAbort)
    process.off("exit", restore)
    process.off("uncaughtExceptionMonitor", restore)
  }
}

/** Time in milliseconds to wait for each answer from the terminal. */
const queryMs = 1_000

/** Switches to the built-in theme for the background that the terminal reports, unless the user has chosen a theme. */
async function useBackground(
  { tui }: Screen,
  { theme, themes }: Pick<AppOptions, "theme" | "themes">,
  app: App,
): Promise<void> {
  const color = await tui.queryTerminalBackgroundColor({ timeoutMs: queryMs })
  const scheme = color ? brightness(color) : await tui.queryTerminalColorScheme({ timeoutMs: queryMs })
  if (scheme === undefined || scheme === theme.background) return
  if ((await themes.chosen()) === undefined) app.setBackground(scheme)
}

/** Returns whether a color appears dark or light. The components range from 0 to 255. */
function brightness({ r, g, b }: RgbColor): "dark" | "light" {
  return 0.299 * r + 0.587 * g + 0.114 * b > 127 ? "light" : "dark"
}

/** Returns the paths of the user's own files for the interface. */
function userFiles(environment: TerminalOptions["env"]) {
  const home = homeDirectory()
  const config = join(userDirectory({ home, environment, directory: home, worktree: home }), "tackle")
  return {
    keybindings: join(config, "keybindings.json"),
    themes: join(config, "themes"),
    theme: join(defaultDataDirectory(environment), "theme"),
    history: join(defaultDataDirectory(environment), "history.jsonl"),
  }
}
