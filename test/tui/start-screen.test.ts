import { expect, test } from "vitest"
import { showStartScreen } from "../../src/tui/start-screen.ts"
import { keys } from "./components.ts"
import { fakeTerminal } from "./fake-terminal.ts"

test("the start screen keeps the sent inputs and the text in the editor, once", async () => {
  const terminal = fakeTerminal()
  const screen = await showStartScreen({ env: {}, terminal, onLeave() {} })
  for (const key of ["o", "n", "e", keys.enter, keys.enter, "t", "w", "o"]) terminal.press(key)
  expect(screen.end()).toEqual({ sent: ["one"], draft: "two" })
  terminal.press("x")
  expect(screen.end()).toEqual({ sent: ["one"], draft: "two" })
})

test("the start screen is visible before it resolves, and leaves nothing behind", async () => {
  const terminal = fakeTerminal()
  const screen = await showStartScreen({ env: { NO_COLOR: "1" }, terminal, onLeave() {} })
  expect(terminal.writes.join("")).toContain("starting…")
  const shown = terminal.writes.length
  screen.end()
  expect(terminal.writes.slice(shown).join("")).toContain("\u001b[2K")
  expect(terminal.writes.join("")).not.toContain("\u001b[2J")
})

test("Ctrl+C leaves from the start screen, and Ctrl+D only with an empty editor", async () => {
  let left = 0
  const terminal = fakeTerminal()
  const screen = await showStartScreen({ env: {}, terminal, onLeave: () => (left += 1) })
  terminal.press("a")
  terminal.press("\u0004")
  expect(left).toBe(0)
  terminal.press(keys.backspace)
  terminal.press("\u0004")
  terminal.press("\u0003")
  expect(left).toBe(2)
  expect(screen.end().draft).toBe("")
})
