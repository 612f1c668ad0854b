import type { TUI } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import type { SessionState } from "../view/session-state.ts"
import type { Keys } from "./keybindings.ts"
import type { PanelText } from "./panel.ts"
import type { WrittenInput } from "./prompt-editor.ts"
import type { Theme } from "./theme.ts"
import type { Themes } from "./theme-file.ts"

/** The parts of the interface that commands use. */
export interface Shell {
  readonly api: TackleApi
  /** Whether the engine runs on a server. */
  readonly isRemote: boolean
  readonly tui: TUI
  readonly theme: Theme
  readonly keys: Keys
  readonly env: Readonly<Record<string, string | undefined>>
  readonly session: SessionApi | undefined
  readonly state: SessionState | undefined
  /** Agent and model for the session that the first prompt creates. */
  readonly defaults: { agent?: string; model?: string }
  /** Opens a session. Undefined shows an empty conversation. */
  open(session: SessionApi | undefined): Promise<void>
  notify(text: string): void
  /** Shows a text above the editor until the user closes it or sends an input. */
  showPanel(title: string, text: PanelText): void
  /** Puts an input into the editor. Moves the previous text to the history. */
  setInput(input: WrittenInput): void
  /** Puts a pending input into the editor. */
  takeBack(inputID: string): Promise<void>
  readonly themes: Themes
  setTheme(theme: Theme): void
  /** Switches between the terminal's scrollback and the alternate screen. */
  toggleFullscreen(): void
  leave(): void
}
