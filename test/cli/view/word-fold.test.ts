import * as fc from "fast-check"
import { expect, test } from "vitest"
import { columns } from "../../../src/cli/view/visible.ts"
import { createWordFold } from "../../../src/cli/view/word-fold.ts"

function fold(text: string, width: number, size = text.length || 1): string {
  const { push, end } = createWordFold(() => width)
  const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  )
  return pieces.map(push).join("") + end()
}

test("wraps prose between words, but not code and tables", () => {
  expect(fold("one two three\nfour", 8)).toBe("one two\nthree\nfour")
  expect(fold("a verylongword b", 6)).toBe("a\nverylongword\nb")
  expect(fold("```js\nconst one = two\n```\nconst one = two", 8)).toBe(
    "```js\nconst one = two\n```\nconst\none =\ntwo",
  )
  expect(fold("  const one = two\n| a | b c d |", 8)).toBe("  const one = two\n| a | b c d |")
})

test("shows the same with every word, however the text is split", () => {
  const words = fc.array(fc.stringMatching(/^[a-z`|]{1,9}$/)).map((list) => list.join(" "))
  fc.assert(
    fc.property(
      words,
      fc.integer({ min: 3, max: 30 }),
      fc.integer({ min: 1, max: 7 }),
      (text, width, size) => {
        const shown = fold(text, width, size)
        expect(shown).toBe(fold(text, width))
        expect(shown.replaceAll("\n", " ")).toBe(text)
        if (/^[a-z]/.test(text))
          for (const line of shown.split("\n"))
            if (line.includes(" ")) expect(columns(line)).toBeLessThanOrEqual(width)
      },
    ),
  )
})
