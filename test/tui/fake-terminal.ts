import type { Terminal } from "@earendil-works/pi-tui"

/** A terminal that records what is written to it. */
export interface FakeTerminal extends Terminal {
  readonly writes: string[]
  /** Sends keys to the program. */
  press(data: string): void
}

/** Creates a terminal of a fixed size. */
export function fakeTerminal({ columns = 100, rows = 30 } = {}): FakeTerminal {
  const writes: string[] = []
  let onInput = (_data: string) => {}
  const write = (data: string) => void writes.push(data)
  return {
    ...{ columns, rows, writes, write, kittyProtocolActive: false },
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
