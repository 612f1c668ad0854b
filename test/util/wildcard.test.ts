import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { wildcardCovers, wildcardMatch, wildcardOverlap } from "../../src/util/wildcard.ts"
import { runs } from "../runs.ts"

describe("wildcardMatch", () => {
  test.each([
    ["ls", "ls", true],
    ["ls -l", "ls", false],
    ["ls", "ls *", true],
    ["ls ", "ls *", true],
    ["ls -l\nrm x", "ls *", true],
    ["lsof", "ls *", false],
    ["src/a/b.ts", "src/*.ts", true],
    ["/w/.env", "**/.env", true],
    ["abc", "a?c", true],
    ["ac", "a?c", false],
    ["ABC", "abc", false],
    ["aXbYc", "a*b*c", true],
    ["ab", "a*b*b", false],
    ["abb", "a*b*b", true],
    ["aba", "ab*ba", false],
    ["x.env.local", "*.env.*", true],
    ["", "*", true],
    ["", "", true],
    ["", "?", false],
    ["a.c", "a.c", true],
    ["abc", "a.c", false],
    ["a+b", "a+b", true],
    ["xaybzc", "*a?b?c", true],
  ])("%j against %j is %s", (text, pattern, expected) => {
    expect(wildcardMatch(text, pattern)).toBe(expected)
  })

  test("agrees with an equivalent regular expression", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "/", "\n", " "), maxLength: 12 })
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "/", " "), maxLength: 8 })
    fc.assert(
      fc.property(text, pattern, (given, wildcard) => {
        const source = (part: string) => part.replaceAll("*", "[^]*").replaceAll("?", "[^]")
        const optional = wildcard.endsWith(" *") ? `|${source(wildcard.slice(0, -2))}` : ""
        expect(wildcardMatch(given, wildcard)).toBe(
          new RegExp(`^(?:${source(wildcard)}${optional})$`).test(given),
        )
      }),
      { numRuns: runs(3_000) },
    )
  })

  // A matcher that backtracks over stars would practically never return for these patterns.
  test.each([
    ["many stars", "a".repeat(50_000), `${"a*".repeat(2_000)}b`],
    ["one long piece", "a".repeat(50_000), `*${"a".repeat(20_000)}b*`],
    ["stars and question marks", "ab".repeat(25_000), `${"*a?".repeat(500)}c`],
  ])("returns quickly for hostile input: %s", (_, text, pattern) => {
    expect(wildcardMatch(text, pattern)).toBe(false)
  })
})

describe("wildcardCovers and wildcardOverlap", () => {
  test.each([
    ["git push *", "git push origin *", true],
    ["git push *", "git push", true],
    ["git push *", "git *", false],
    ["git push *", "*", false],
    ["*", "*", true],
    ["a?", "a*", false],
    ["a*c", "ab*bc", true],
    ["a **", "a *", false],
  ])("%j covers %j: %s", (wide, narrow, expected) => {
    expect(wildcardCovers(wide, narrow)).toBe(expected)
  })

  test.each([
    ["git push *", "git *", true],
    ["*.env", "src/*.ts", false],
    ["*.env", "src/*", true],
    ["rm *", "ls *", false],
    ["a?c", "a*", true],
    ["ls *", "ls", true],
    ["a*b", "b*a", false],
  ])("%j overlaps %j: %s", (a, b, expected) => {
    expect(wildcardOverlap(a, b)).toBe(expected)
    expect(wildcardOverlap(b, a)).toBe(expected)
  })

  test("agrees with wildcardMatch on random texts", () => {
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", " "), maxLength: 6 })
    const text = fc.string({ unit: fc.constantFrom("a", "b", " "), maxLength: 6 })
    fc.assert(
      fc.property(pattern, pattern, text, (one, other, sample) => {
        const [first, second] = [wildcardMatch(sample, one), wildcardMatch(sample, other)]
        if (first && second) expect(wildcardOverlap(one, other)).toBe(true)
        if (second && wildcardCovers(one, other)) expect(first).toBe(true)
      }),
      { numRuns: runs(5_000) },
    )
  })
})
