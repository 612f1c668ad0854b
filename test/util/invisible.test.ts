import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { invisibleCharacters, showInvisible } from "../../src/util/invisible.ts"
import { runs } from "../runs.ts"

describe("invisible characters", () => {
  test.each([
    ["a direction mark", "rm \u202ex", "rm <U+202E>x"],
    ["a character of no width", "npm\u200b test", "npm<U+200B> test"],
    ["a tag", "ls \u{e0041}", "ls <U+E0041>"],
    ["a tab", "ls\tx", "ls<U+0009>x"],
    ["a carriage return", "ls\rx", "ls<U+000D>x"],
    ["a blank that is no space", "ls\u00a0x", "ls<U+00A0>x"],
    ["a letter without a shape", "a\u3164b", "a<U+3164>b"],
    ["an escape", "\u001b[2Jls", "<U+001B>[2Jls"],
    ["half a character", "a\ud800b", "a<U+D800>b"],
  ])("shows and detects %s", (_, text, shown) => {
    expect(showInvisible(text)).toBe(shown)
    expect(invisibleCharacters(text)).toBe(true)
  })

  test.each(["ls -la 'a b'", "two\nlines", "漢字 🎉 é", "# $()`"])("leaves %j unchanged", (text) => {
    expect(showInvisible(text)).toBe(text)
    expect(invisibleCharacters(text)).toBe(false)
  })

  test("leaves no invisible characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => !invisibleCharacters(showInvisible(text))),
      { numRuns: runs(2_000) },
    )
    expect(showInvisible("\ta\u200b", { keepTabs: true })).toBe("\ta<U+200B>")
  })
})
