// These modules do not load Markdown or the alternate screen, which the start screen does not need.
import { Editor } from "@earendil-works/pi-tui/dist/components/editor.js"
import { Text } from "@earendil-works/pi-tui/dist/components/text.js"
import { matchesKey } from "@earendil-works/pi-tui/dist/keys.js"
import { ProcessTerminal, type Terminal } from "@earendil-works/pi-tui/dist/terminal.js"
import { TuiMainScreen } from "@earendil-works/pi-tui/dist/tui-main-screen.js"
import { builtInTheme, colorDepth, editorTheme } from "./theme.ts"

/** An editor that is shown while the engine opens, so that the user can already type. */
export interface StartScreen {
  /**
   * Removes the screen and restores the terminal. Returns the inputs that the user sent, and the text in the editor.
   * Can be called more than once.
   */
  end(): { sent: string[]; draft: string }
}

/**
 * Shows the start screen. Resolves when the screen is visible and contains the text that the user has already typed.
 * `onLeave` is called for Ctrl+C, and for Ctrl+D in an empty editor.
 */
export async function showStartScreen({
  env,
  terminal = new ProcessTerminal(),
  onLeave,
}: {
  env: Readonly<Record<string, string | undefined>>
  terminal?: Terminal
  onLeave(): void
}): Promise<StartScreen> {
  const theme = builtInTheme("dark", colorDepth(env))
  const tui = new TuiMainScreen(terminal)
  const sent: string[] = []
  let isShown = true
  const editor = new Editor(tui, editorTheme(theme), { paddingX: 1 })
  editor.onSubmit = (text) => {
    if (text.trim() !== "") sent.push(text)
  }
  tui.addChild(new Text("Tackle\n", 0, 0))
  tui.addChild(editor)
  tui.addChild(new Text(theme.dim("starting…"), 0, 0))
  tui.setFocus(editor)
  tui.addInputListener((data) => {
    const leaves = matchesKey(data, "ctrl+c") || (matchesKey(data, "ctrl+d") && editor.getText() === "")
    if (leaves) onLeave()
    return leaves ? { consume: true } : undefined
  })

  function end(): ReturnType<StartScreen["end"]> {
    if (isShown) {
      isShown = false
      tui.clear()
      tui.renderNow()
      tui.stop()
      process.off("exit", end)
      process.off("uncaughtExceptionMonitor", end)
    }
    return { sent, draft: editor.getExpandedText() }
  }

  process.on("exit", end)
  // Runs before Node prints the error of a crash.
  process.on("uncaughtExceptionMonitor", end)
  tui.start()
  tui.renderNow()
  // Receives keys that the user has already typed, because opening the engine then blocks this thread.
  await new Promise((resolve) => setTimeout(resolve, 1))
  return { end }
}
