import { expect, test } from "vitest"
import { createScreen } from "../../src/tui/screen.ts"
import { fakeTerminal } from "./fake-terminal.ts"

test.each([true, false])(
  "reports of the focus reach the interface, also if fullscreen is %s",
  (fullscreen) => {
    const terminal = fakeTerminal()
    const { tui, start, stop } = createScreen(terminal, { fullscreen })
    const seen: string[] = []
    tui.addInputListener((data) => {
      seen.push(data)
      return { consume: true }
    })
    start()
    for (const report of ["\u001b[O", "\u001b[I"]) terminal.press(report)
    expect(seen).toEqual(["\u001b[O", "\u001b[I"])
    stop()
  },
)
