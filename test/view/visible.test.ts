import * as fc from "fast-check"
import { expect, test } from "vitest"
import { columns, folded, oneLine } from "../../src/view/visible.ts"

test("cuts a line between words, unless half of the line would stay empty", () => {
  expect(oneLine("Reads and thinks, changes nothing", 20)).toBe("Reads and thinks,…")
  expect(oneLine("Reads and", 9)).toBe("Reads and")
  expect(oneLine("abcdefghijklmnop rest", 10)).toBe("abcdefghi…")
})

test("wraps a notice between words with an indent, and keeps a wider path whole", () => {
  expect(folded("tackle: one two three", 12)).toBe("tackle: one\n  two three")
  expect(folded("  a bb\n/a/path/that/is/long x", 8)).toBe("  a bb\n/a/path/that/is/long\n  x")
})

test("loses nothing in wrapping, and keeps every line of two words within the width", () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[a-z]{1,12}$/)),
      fc.integer({ min: 6, max: 30 }),
      (words, width) => {
        const lines = folded(words.join(" "), width).split("\n")
        expect(lines.map((line) => line.trim()).join(" ")).toBe(words.join(" "))
        for (const line of lines)
          if (line.trim().includes(" ")) expect(columns(line)).toBeLessThanOrEqual(width)
      },
    ),
  )
})
