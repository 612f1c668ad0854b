import type { Terminal } from "@earendil-works/pi-tui"

/** A terminal whose keys a test presses. */
export interface TestTerminal extends Terminal {
  /** Sends keys to the program. */
  press(data: string): void
}

/** A terminal that records what is written to it. */
export interface FakeTerminal extends TestTerminal {
  readonly writes: string[]
}

/** Creates a terminal of a fixed size that records what is written to it. */
export function fakeTerminal({ columns = 100, rows = 30 } = {}): FakeTerminal {
  const writes: string[] = []
  return { ...terminalThatWrites((data) => void writes.push(data), { columns, rows }), writes }
}

/** Creates a terminal of a fixed size that passes everything that the program writes to `write`. */
export function terminalThatWrites(
  write: (data: string) => void,
  { columns, rows }: { columns: number; rows: number },
): TestTerminal {
  let onInput = (_data: string) => {}
  return {
    ...{ columns, rows, write, kittyProtocolActive: false },
    press: (data) => onInput(data),
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
    setTitle: (title) => write(`\u001b]0;${title}\u0007`),
    setProgress() {},
  }
}
