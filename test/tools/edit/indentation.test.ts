import { describe, expect, test } from "vitest"
import { createReindent } from "../../../src/tools/edit/indentation.ts"

const spaces = (count: number) => " ".repeat(count)

describe("createReindent", () => {
  test("changes nothing if the known lines agree with the file", () => {
    const reindent = createReindent([{ from: "  ", to: "  " }])
    expect(reindent("\t  \t")).toBe("\t  \t")
  })

  test("shifts by the difference of one level", () => {
    const levels = [{ from: spaces(4), to: spaces(8) }]
    const reindent = createReindent(levels, { scale: 1 })
    expect([reindent(spaces(4)), reindent(spaces(6)), reindent("")]).toEqual([
      spaces(8),
      spaces(10),
      spaces(4),
    ])
    const unknown = createReindent(levels)
    expect([unknown(spaces(4)), unknown(spaces(6))]).toEqual([spaces(8), undefined])
  })

  test("translates a known level even if others are undetermined", () => {
    const reindent = createReindent([{ from: " ", to: spaces(4) }], { scale: 2 })
    expect([reindent(" "), reindent("  "), reindent("")]).toEqual([spaces(4), undefined, undefined])
  })

  test("scales if two levels show it", () => {
    const reindent = createReindent([
      { from: "", to: "" },
      { from: spaces(2), to: spaces(4) },
    ])
    expect(reindent(spaces(6))).toBe(spaces(12))
  })

  test("turns spaces into tabs and tabs into spaces", () => {
    expect(createReindent([{ from: spaces(4), to: "\t" }])(spaces(12))).toBe("\t\t\t")
    expect(createReindent([{ from: "\t", to: spaces(2) }])("\t\t")).toBe(spaces(4))
  })

  test.each([
    [
      "a level that means two things",
      [
        { from: "", to: "" },
        { from: "", to: "\t" },
      ],
      "",
    ],
    ["tabs if only spaces are known", [{ from: "  ", to: "    " }], "\t"],
    ["a fraction of a tab", [{ from: spaces(4), to: "\t" }], spaces(6)],
    ["a level left of the file's margin", [{ from: spaces(4), to: spaces(2) }], ""],
    [
      "levels that contradict each other",
      [
        { from: "", to: "" },
        { from: spaces(2), to: spaces(4) },
        { from: spaces(4), to: spaces(5) },
      ],
      spaces(6),
    ],
  ])("does not guess %s", (_, pairs, indent) => {
    expect(createReindent(pairs)(indent)).toBeUndefined()
  })
})
