import fc from "fast-check"
import { expect, test } from "vitest"
import { columns, oneLine, visible, wrapped } from "../../src/view/visible.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary" }),
  fc.lorem({ maxCount: 40 }),
)

test("escapes everything that moves the cursor or hides text", () => {
  expect(visible("a\u001b[2Jb\u202Ec\u200Bd\u{E0041}e\r\n\tf")).toBe(
    "a<U+001B>[2Jb<U+202E>c<U+200B>d<U+E0041>e<U+000D>\n\tf",
  )
  fc.assert(fc.property(text, (given) => !/[\p{Cc}\p{Cf}]/u.test(visible(given).replaceAll(/[\n\t]/g, ""))))
})

test("keeps the width of a line, also with wide characters", () => {
  expect(columns("a漢字🎉e\u0301")).toBe(8)
  expect(oneLine("漢字漢字", 5)).toBe("漢字…")
  expect(oneLine("  two\n words ", 20)).toBe("two words")
  fc.assert(
    fc.property(
      text,
      fc.integer({ min: 1, max: 100 }),
      (given, width) => columns(oneLine(given, width)) <= width,
    ),
  )
})

test("keeps the width and all the words of wrapped lines", () => {
  expect(wrapped("one two three four", 9)).toEqual(["one two", "three", "four"])
  expect(wrapped("one two three four", 9, 2)).toEqual(["one two", "three…"])
  expect(wrapped("unbreakable", 4)).toEqual(["unbr", "eaka", "ble"])
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 100 }), (given, width) => {
      const lines = wrapped(given, width)
      const bare = (words: string) => words.replaceAll(/\s/g, "")
      expect(bare(lines.join(""))).toBe(bare(visible(given)))
      for (const line of lines) expect(columns(line)).toBeLessThanOrEqual(width)
    }),
  )
})
