import xterm from "@xterm/headless"
import { type TestTerminal, terminalThatWrites } from "./fake-terminal.ts"

/** A terminal emulator. A test reads its screen as a user does. */
export interface VirtualTerminal extends TestTerminal {
  /** Returns the visible lines, without colors and without spaces at their ends. */
  screen(): Promise<string[]>
  /** Returns the visible lines that the terminal wrapped because they were wider than the screen. */
  wrappedLines(): Promise<string[]>
}

/** Creates an empty terminal of a fixed size. */
export function virtualTerminal({ columns, rows }: { columns: number; rows: number }): VirtualTerminal {
  const emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  const terminal = terminalThatWrites((data) => emulator.write(data), { columns, rows })
  // Answers to queries of the program.
  emulator.onData(terminal.press)

  async function visibleLines() {
    await new Promise<void>((done) => emulator.write("", done))
    const { active } = emulator.buffer
    return Array.from({ length: rows }, (_, row) => active.getLine(active.viewportY + row)).filter(
      (line) => line !== undefined,
    )
  }

  return {
    ...terminal,
    screen: async () => (await visibleLines()).map((line) => line.translateToString().trimEnd()),
    wrappedLines: async () =>
      (await visibleLines()).filter((line) => line.isWrapped).map((line) => line.translateToString(true)),
  }
}
