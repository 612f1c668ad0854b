import { ProcessTerminal, type Terminal } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import { createApp, type SessionDefaults } from "./app.ts"
import { createScreen } from "./screen.ts"
import { builtInTheme, colorDepth } from "./theme.ts"

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
  const theme = builtInTheme("dark", colorDepth(env))
  const app = createApp({ api, screen, theme, session, defaults, welcome, facts, onLeave: leave })
  signal.addEventListener("abort", () => leave(), { once: true })
  const restore = () => screen.stop()
  // Runs before Node prints the error of a crash.
  process.on("uncaughtExceptionMonitor", restore)
  process.on("exit", restore)
  screen.start()
  try {
    if (session) await app.open(session)
    if (prompt !== undefined) await app.send(prompt, "steer")
    if (!signal.aborted) await left
    return app.session?.id
  } finally {
    app.close()
    screen.stop()
    process.off("exit", restore)
    process.off("uncaughtExceptionMonitor", restore)
  }
}
