import * as fc from "fast-check"
import { expect, test } from "vitest"
import { describeDifference, firstDifference } from "../../../src/model/recording/replay.ts"

function say(expected: unknown, got: unknown): string | undefined {
  const difference = firstDifference(expected, got)
  return difference && describeDifference(difference)
}

test("names the path and shows the text around the difference", () => {
  expect(say({ a: [{ b: 1 }] }, { a: [{ b: 2 }] })).toBe("a[0].b: expected 1, got 2")
  expect(say({ a: [1] }, { a: [1, { c: 2 }] })).toBe('a[1]: expected nothing, got {"c":2}')
  expect(say({ a: 1, b: 2 }, { a: 1 })).toBe("b: expected 2, got nothing")
  expect(say([], {})).toBe("the body: expected [], got {}")
  const same = "x".repeat(500)
  expect(say({ text: `${same}one` }, { text: `${same}two` })).toBe(
    `text: expected …"${"x".repeat(30)}one", got …"${"x".repeat(30)}two"`,
  )
})

test("compares ids only by their prefix", () => {
  const [one, two] = ["ses_0mwqg802r000o7j97acaoh", "ses_0mwqgbkhe000l39hfezjv6"]
  expect(say({ text: `in ${one}/x` }, { text: `in ${two}/x` })).toBeUndefined()
  expect(say(one, two.replace("ses", "msg"))).toContain("expected")
  expect(say(`${one}a`, two)).toContain("expected")
})

test("finds a difference exactly between different values", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      // Values with the same JSON are equal.
      const [x, y] = [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))]
      expect(firstDifference(x, structuredClone(x))).toBeUndefined()
      expect(firstDifference(x, y) === undefined).toBe(isSame(x, y))
    }),
  )
})

function isSame(a: unknown, b: unknown): boolean {
  try {
    expect(a).toEqual(b)
    return true
  } catch {
    return false
  }
}
