import * as fc from "fast-check"
import { expect, test } from "vitest"
import { withMarks, withPlaces } from "../../../src/model/recording/format.ts"

const here = {
  data: "/home/al/.local/share/tackle",
  directory: "/home/al/shop/src",
  worktree: "/home/al/shop",
  home: "/home/al",
  today: "2026-11-21",
}
const there = { data: "/d", directory: "/w/a", worktree: "/w", home: '/root "x"', today: "2027-01-02" }

test("replaces values by placeholders, longest first", () => {
  const json = JSON.stringify({ a: "/home/al/shop/src/x.ts of /home/al/shop", b: "Today: 2026-11-21" })
  const marked = withMarks(json, here)
  expect(marked).toBe('{"a":"⟪directory⟫/x.ts of ⟪worktree⟫","b":"Today: ⟪today⟫"}')
  expect(JSON.parse(withPlaces(marked, there))).toEqual({ a: "/w/a/x.ts of /w", b: "Today: 2027-01-02" })
})

test("restores the original text", () => {
  const text = fc.oneof(fc.string(), fc.constantFrom(...Object.values(here)))
  fc.assert(
    fc.property(fc.array(text), (texts) => {
      const json = JSON.stringify(texts)
      expect(withPlaces(withMarks(json, here), here)).toBe(json)
    }),
  )
})

test("does not replace the root directory", () => {
  expect(withMarks('"/a"', { ...here, directory: "/" })).toBe('"/a"')
})
