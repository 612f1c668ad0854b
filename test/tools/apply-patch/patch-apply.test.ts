import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { applyHunks, PatchMismatchError } from "../../../src/tools/apply-patch/patch-apply.ts"
import { type PatchHunk, parsePatch } from "../../../src/tools/apply-patch/patch-parse.ts"
import { runs } from "../../runs.ts"

function hunksOf(...lines: string[]): PatchHunk[] {
  const [section] = parsePatch(
    ["*** Begin Patch", "*** Update File: f", ...lines, "*** End Patch"].join("\n"),
  )
  return section?.kind === "update" ? section.hunks : []
}
const apply = (text: string, ...lines: string[]) => applyHunks(text, hunksOf(...lines), "f").text
const how = (text: string, ...lines: string[]) =>
  applyHunks(text, hunksOf(...lines), "f").hunks.map(({ strategy, line }) => `${strategy} ${line}`)

describe("finds a hunk", () => {
  test("by unique lines", () => expect(apply("a\nb\nc\n", " a", "-b", "+B")).toBe("a\nB\nc\n"))

  test("as whole lines only", () => expect(apply("xb\nb\nbx\n", "-b", "+B")).toBe("xb\nB\nbx\n"))

  test("below the anchor if it is not unique", () => {
    const text = "f1\n x\n y\nf2\n x\n y\nf3\n x\n"
    expect(apply(text, "@@ f2", "- x", "+ z")).toBe("f1\n x\n y\nf2\n z\n y\nf3\n x\n")
    expect(apply(text, "@@ f1", "- x", "+ z")).toBe("f1\n z\n y\nf2\n x\n y\nf3\n x\n")
  })

  test("below nested anchors, of which only the outer is unique", () => {
    const text = "class A\n run()\n  x\nclass B\n run()\n  x\n"
    expect(apply(text, "@@ class B", "@@ run()", "-  x", "+  z")).toBe(text.replace(/x\n$/, "z\n"))
  })

  test("nearest to the anchor among repeated lines", () =>
    expect(apply("x\nhead\nx\nx\nx\n", "@@ head", "-x", "+y")).toBe("x\nhead\ny\nx\nx\n"))

  test("below the previous hunk if it is unique there", () =>
    expect(apply("x\nmark\nx\n", " mark", "+m", "@@", "-x", "+y")).toBe("x\nmark\nm\ny\n"))

  test("out of order if it is unique", () =>
    expect(apply("a\nb\nc\n", "-c", "+C", "@@", "-a", "+A")).toBe("A\nb\nC\n"))

  test("at the end of the file", () =>
    expect(apply("x\ny\nx\n", "-x", "+z", "*** End of File")).toBe("x\ny\nz\n"))

  test("with a wrong anchor if its lines are unique", () =>
    expect(apply("a\nb\n", "@@ nowhere", "-b", "+B")).toBe("a\nB\n"))
})

describe("lines without context", () => {
  test("are inserted below the anchor", () =>
    expect(apply("a\n  b\nc\n", "@@ b", "+x")).toBe("a\n  b\nx\nc\n"))
  test("are appended at the end", () => expect(apply("a\n", "+x", "*** End of File")).toBe("a\nx\n"))
  test("are inserted into an empty file", () => expect(apply("", "+x", "+y")).toBe("x\ny\n"))
  test("are inserted before a change at the same location", () =>
    expect(apply("a\nb\nc\n", "-b", "+B", "@@ a", "+x")).toBe("a\nx\nB\nc\n"))
})

describe("line endings", () => {
  test("of CRLF files are kept and used for new lines", () =>
    expect(apply("a\r\nb\r\nc\r\n", " a", "-b", "+B", "+D")).toBe("a\r\nB\r\nD\r\nc\r\n"))
  test("of mixed files are kept, and new lines use those of their location", () =>
    expect(apply("a\nb\nc\r\nd\r\n", " c", "+x")).toBe("a\nb\nc\r\nx\r\nd\r\n"))
  test("are not added to a last line without one", () => {
    expect(apply("a\nb", "-b", "+B")).toBe("a\nB")
    expect(apply("a\nb", " b", "+c")).toBe("a\nb\nc")
    expect(apply("a\r\nb", " b", "+c")).toBe("a\r\nb\r\nc")
    expect(apply("a\nb", "-b")).toBe("a")
    expect(apply("a\nb", "-a", "+A")).toBe("A\nb")
  })
})

describe("an inexact match", () => {
  test("keeps the file's context, and reports the strategy", () => {
    expect(apply("a  \nb\n", " a", "-b", "+B")).toBe("a  \nB\n")
    expect(how("a  \nb\n", " a", "-b", "+B")).toEqual(["normalized-lines 1"])
  })
  test("gets the file's indentation", () => {
    const text = "if x:\n\t\tone()\n\t\ttwo()\n"
    expect(apply(text, " one()", "-two()", "+drei()")).toBe("if x:\n\t\tone()\n\t\tdrei()\n")
    expect(how(text, " one()", "-two()", "+drei()")).toEqual(["normalized-lines 2"])
  })
  test("keeps look-alikes in its context", () => {
    expect(apply("say “hi”\nb\n", ' say "hi"', "-b", "+c")).toBe("say “hi”\nc\n")
    expect(how("say “hi”\nb\n", ' say "hi"', "-b", "+c")).toEqual(["normalized-lines 1"])
  })
  test("is refused if it is not unique, even below an anchor", () => {
    expect(() => apply("h\n  x\n   x\n", "@@ h", "-x", "+y")).toThrow(/matches 2 places, at lines 2, 3/)
  })
  test("is refused, with the reason, if its new lines are unclear", () => {
    expect(() => apply("if x:\n    one()\n", " one()", "+two()")).toThrow(/its indentation differs/)
    expect(() => apply("say(“hi”)\n", ' say("hi")', "+say(„ho“)")).toThrow(/look-alike quotes/)
  })
  test("is not used if several exact matches exist", () =>
    expect(() => apply("x\nx\n", "-x", "+y")).toThrow(/matches 2 places, at lines 1, 2/))
})

describe("rejects", () => {
  test("lines with very many matches, with a lower bound of their number", () =>
    expect(() => apply("x\n".repeat(10_001), "-x", "+y")).toThrow(
      /matches at least 10000 places, at lines 1, .*, 10 and at least 9990 more\. /,
    ))

  test.each([
    ["missing lines", ["-nothing here", "+x"], /not found in the file/],
    ["a missing anchor", ["@@ nowhere", "+x"], /"@@ nowhere", which was not found/],
    ["an anchor that is not unique", ["@@ same", "+x"], /matches 2 places/],
    ["new lines without a location", ["+x"], /does not say where/],
    ["two hunks on the same lines", [" a", "-b", "@@", "-b", "+c"], /changes the same lines/],
    ["a new line within the lines of another hunk", [" a", "-b", "@@ a", "+c"], /changes the same lines/],
  ])("%s", (_, lines, message) => {
    expect(() => apply("a\nb\nsame\nsame\n", ...lines)).toThrow(PatchMismatchError)
    expect(() => apply("a\nb\nsame\nsame\n", ...lines)).toThrow(message)
  })

  test("shows the most similar text", () =>
    expect(() => apply("a\nconst total = 7\nb\n", "-const total = 8", "+x")).toThrow(
      /line 2 .*\nconst total = 7/,
    ))
})

/** Lines that may repeat, so that most patches are ambiguous somewhere. */
const word = fc.constantFrom("a", "b", "c", "  a", "", "d ")
const file = fc.record({
  lines: fc.array(word, { minLength: 1, maxLength: 12 }),
  eol: fc.constantFrom("\n", "\r\n"),
  open: fc.boolean(),
})

test("either applies a random patch exactly or refuses it", () => {
  let applied = 0
  fc.assert(
    fc.property(
      file,
      fc.nat(),
      fc.nat(4),
      fc.array(fc.constantFrom("n1", "n2"), { maxLength: 3 }),
      fc.nat(3),
      ({ lines, eol, open }, seed, removed, added, context) => {
        const at = seed % lines.length
        const until = Math.min(lines.length, at + removed)
        const [before, after] = [
          lines.slice(Math.max(0, at - context), at),
          lines.slice(until, until + context),
        ]
        const marked = [
          ...before.map((line) => ` ${line}`),
          ...lines.slice(at, until).map((line) => `-${line}`),
          ...added.map((line) => `+${line}`),
          ...after.map((line) => ` ${line}`),
        ]
        fc.pre(until > at || added.length > 0)
        const text = lines.join(eol) + (open && lines.at(-1) !== "" ? "" : eol)
        fc.pre(text.includes(eol))
        const wanted = [...lines.slice(0, at), ...added, ...lines.slice(until)]
        const closed = text.endsWith(eol)
        try {
          const result = apply(text, ...marked)
          expect(result).toBe(wanted.join(eol) + (closed && wanted.length > 0 ? eol : ""))
          applied += 1
        } catch (error) {
          expect(error).toBeInstanceOf(PatchMismatchError)
        }
      },
    ),
    { numRuns: runs(1000) },
  )
  expect(applied).toBeGreaterThan(runs(1000) / 2.5)
})
