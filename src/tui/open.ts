import { join } from "node:path"
import { ProcessTerminal, type Terminal } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import { userDirectory } from "../config/location.ts"
import { defaultDataDirectory } from "../engine/data-directory.ts"
import { homeDirectory } from "../util/paths.ts"
import { createApp, type SessionDefaults } from "./app.ts"
import { openHistory } from "./history.ts"
import { loadKeys } from "./keys.ts"
import { createScreen } from "./screen.ts"
import { builtInTheme, colorDepth, listThemes } from "./theme.ts"

/** Options of {@link openTerminal}. */
export interface TerminalOptions {
  api: TackleApi
  /** Session to continue. Undefined starts a new session with the first prompt. */
  session?: SessionApi
  /** Text to send at the start. */
  prompt?: string
  defaults?: SessionDefaults
  fullscreen?: boolean
  /** Lines above an empty conversation. */
  welcome?: readonly string[]
  /** Facts for the status line, such as the git branch. */
  facts?: readonly string[]
  /** Ends the interface when it fires, as on SIGTERM. */
  signal: AbortSignal
  env: Readonly<Record<string, string | undefined>>
  /** Terminal to use. Default: the terminal of this process. */
  terminal?: Terminal
}

/**
 * Opens the interactive interface on the terminal. Resolves with the id of the last session, if any, when the user
 * leaves or the signal fires. Restores the terminal in each of these cases, and also if the interface fails.
 */
export async function openTerminal(options: TerminalOptions): Promise<string | undefined> {
  const { api, session, prompt, signal, env, defaults = {}, welcome = [], facts = [] } = options
  const screen = createScreen(options.terminal ?? new ProcessTerminal(), {
    fullscreen: options.fullscreen ?? false,
  })
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  const depth = colorDepth(env)
  const theme = builtInTheme("dark", depth)
  const files = userFiles(env)
  const [{ keys, problems }, history] = await Promise.all([
    loadKeys(files.keybindings),
    openHistory(files.history),
  ])
  const app = createApp({
    ...{ api, screen, theme, keys, history, env, session, defaults, welcome, facts },
    listThemes: () => listThemes(files.themes, depth),
    onLeave: leave,
  })
  if (problems.length > 0) app.notify(problems.join("\n"))
  signal.addEventListener("abort", () => leave(), { once: true })
  const restore = () => screen.stop()
  // Runs before Node prints the error of a crash.
  process.on("uncaughtExceptionMonitor", restore)
  process.on("exit", restore)
  screen.start()
  try {
    if (session) await app.open(session)
    if (prompt !== undefined) await app.send(prompt)
    if (!signal.aborted) await left
    return app.session?.id
  } finally {
    app.close()
    screen.stop()
    process.off("exit", restore)
    process.off("uncaughtExceptionMonitor", restore)
  }
}

/** Returns the paths of the user's own files for the interface, on this machine. */
function userFiles(environment: TerminalOptions["env"]) {
  const home = homeDirectory()
  const config = join(userDirectory({ home, environment, directory: home, worktree: home }), "tackle")
  return {
    keybindings: join(config, "keybindings.json"),
    themes: join(config, "themes"),
    history: join(defaultDataDirectory(environment), "history.jsonl"),
  }
}
