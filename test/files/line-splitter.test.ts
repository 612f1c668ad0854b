import fc from "fast-check"
import { expect, test } from "vitest"
import { createLineSplitter } from "../../src/files/line-splitter.ts"

/** Texts with many line endings and characters of several units. */
const text = fc.string({ unit: fc.constantFrom("a", "🙂", "\n", "\r", "\r\n"), maxLength: 40 })

function split(pieces: readonly string[], maxLength: number): { line: string; length: number }[] {
  const lines: { line: string; length: number }[] = []
  const splitter = createLineSplitter(maxLength, (line, length) => lines.push({ line, length }))
  for (const piece of pieces) splitter.push(piece)
  splitter.end()
  return lines
}

test("returns the same lines for all chunk sizes", () => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(40)), fc.integer({ min: 1, max: 20 }), (whole, cuts, maxLength) => {
      const places = [0, ...cuts.filter((cut) => cut < whole.length).sort((a, b) => a - b), whole.length]
      const pieces = places.slice(1).map((place, index) => whole.slice(places[index], place))
      expect(split(pieces, maxLength)).toEqual(split([whole], maxLength))
    }),
  )
})

test("returns every line, and the full length of cut lines", () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 20 }), (whole, maxLength) => {
      const lines = whole.split("\n").map((line) => line.replace(/\r$/, ""))
      if (whole === "" || whole.endsWith("\n")) lines.pop()
      const found = split([whole], maxLength)
      expect(found.map(({ length }) => length)).toEqual(lines.map((line) => line.length))
      for (const [index, { line }] of found.entries()) {
        expect(line.isWellFormed()).toBe(true)
        expect(line.length).toBeLessThanOrEqual(maxLength)
        expect(lines[index]?.startsWith(line)).toBe(true)
      }
    }),
  )
})
