import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, test } from "vitest"
import { renderMarkdown } from "../../src/tui/markdown.ts"
import { theme } from "./components.ts"

test("the memory for formatted Markdown does not grow with the number of blocks", () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const heapAfter = (from: number, count: number) => {
    for (let index = from; index < from + count; index += 1)
      renderMarkdown(`${index} ${"word ".repeat(400)}\n\nnext`, 80, theme)
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = heapAfter(0, 600)
  // Each block takes more than 4 KB.
  expect(heapAfter(600, 1_400) - before).toBeLessThan(3_000_000)
})
