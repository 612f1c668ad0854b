import type { Terminal } from "@earendil-works/pi-tui"
import xterm from "@xterm/headless"

/** A terminal emulator. A test reads its screen as a user does. */
export interface VirtualTerminal extends Terminal {
  /** Sends keys to the program. */
  press(data: string): void
  /** Returns the visible lines, without colors and without spaces at their ends. */
  screen(): Promise<string[]>
  /** Returns the visible lines that the terminal wrapped because they were wider than the screen. */
  wrappedLines(): Promise<string[]>
}

/** Creates an empty terminal of a fixed size. */
export function virtualTerminal({ columns, rows }: { columns: number; rows: number }): VirtualTerminal {
  const emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  let onInput = (_data: string) => {}
  // Answers to queries of the program.
  emulator.onData((data) => onInput(data))
  const write = (data: string) => emulator.write(data)

  async function visibleLines() {
    await new Promise<void>((done) => emulator.write("", done))
    const { active } = emulator.buffer
    return Array.from({ length: rows }, (_, row) => active.getLine(active.viewportY + row)).filter(
      (line) => line !== undefined,
    )
  }

  return {
    ...{ columns, rows, write, kittyProtocolActive: false },
    press: (data) => onInput(data),
    screen: async () => (await visibleLines()).map((line) => line.translateToString().trimEnd()),
    wrappedLines: async () =>
      (await visibleLines()).filter((line) => line.isWrapped).map((line) => line.translateToString(true)),
    start(handler) {
      onInput = handler
    },
    stop() {
      onInput = () => {}
    },
    drainInput: async () => {},
    moveBy: (lines) => write(lines > 0 ? `\u001b[${lines}B` : `\u001b[${-lines}A`),
    hideCursor: () => write("\u001b[?25l"),
    showCursor: () => write("\u001b[?25h"),
    clearLine: () => write("\u001b[K"),
    clearFromCursor: () => write("\u001b[J"),
    clearScreen: () => write("\u001b[2J\u001b[H"),
    setTitle() {},
    setProgress() {},
  }
}
