import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  type PatchSection,
  PatchSyntaxError,
  parsePatch,
} from "../../../src/tools/apply-patch/patch-parse.ts"
import { runs } from "../../runs.ts"

const patch = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n")

const update = [
  "*** Update File: src/a.ts",
  "*** Move to: src/b.ts",
  "@@ class A",
  "@@ run() {",
  " one",
  "-two",
  "+zwei",
  "",
  "+end",
  "*** End of File",
]
const updated: PatchSection = {
  kind: "update",
  path: "src/a.ts",
  moveTo: "src/b.ts",
  hunks: [
    {
      anchors: ["class A", "run() {"],
      lines: [
        { kind: "context", text: "one" },
        { kind: "remove", text: "two" },
        { kind: "add", text: "zwei" },
        { kind: "context", text: "" },
        { kind: "add", text: "end" },
      ],
      atEnd: true,
      line: 4,
    },
  ],
}

test("parses all kinds of sections", () => {
  const text = patch("*** Add File: n.txt", "+a", "+", "+ b", "*** Delete File: old name.txt", ...update)
  expect(parsePatch(text)).toMatchObject([
    { kind: "add", path: "n.txt", lines: ["a", "", " b"] },
    { kind: "delete", path: "old name.txt" },
    { ...updated, hunks: [{ ...updated.hunks[0], line: 9 }] },
  ])
})

test.each([
  ["plain", (text: string) => text],
  ["CRLF", (text: string) => text.replaceAll("\n", "\r\n")],
  ["a here-document", (text: string) => `apply_patch <<'EOF'\n${text}\nEOF\n`],
  ["a here-document without quotes", (text: string) => `<<EOF\n${text}\nEOF`],
  ["a fence", (text: string) => `\`\`\`diff\n${text}\n\`\`\`\n`],
  ["white space around it", (text: string) => `\n\n  ${text}  \n\n`],
  ["a blank before the end", (text: string) => text.replaceAll("*** End", " *** End")],
  [
    "a tab before the end and a fence",
    (text: string) => `${text.replaceAll("*** End", "\t*** End")}\n\`\`\``,
  ],
  ["an indented patch", (text: string) => text.replaceAll(/^/gm, "    ")],
  ["markers in another case", (text: string) => text.replaceAll(/^\*\*\* \w+ \w+/gm, (m) => m.toLowerCase())],
  ["markers without blanks", (text: string) => text.replaceAll(/^\*\*\* (Begin|End) P/gm, "***$1P")],
  ["closed markers", (text: string) => text.replaceAll(/Patch$/gm, "Patch ***")],
  ["blanks before a section", (text: string) => text.replace("*** Update", "  ***  Update")],
])("%s", (_, wrap) => {
  const [read] = parsePatch(wrap(patch(...update)))
  const hunks = read?.kind === "update" ? read.hunks.map((hunk) => ({ ...hunk, line: 4 })) : []
  expect({ ...read, hunks }).toEqual(updated)
})

test("ignores blank lines between sections", () => {
  const text = patch(
    "",
    "*** Add File: n.txt",
    "+a",
    "",
    "*** Update File: a",
    " x",
    "+y",
    "",
    "",
    "@@",
    "-z",
    "",
  )
  expect(parsePatch(text)).toMatchObject([
    { lines: ["a"] },
    { hunks: [{ lines: [{ text: "x" }, { text: "y" }] }, { anchors: [], lines: [{ text: "z" }] }] },
  ])
})

test("reads indented heads after an added and a deleted file", () => {
  const text = patch("*** Add File: n", "+a", " *** Delete File: o", " *** Update File: a", "-x")
  expect(parsePatch(text)).toMatchObject([{ kind: "add" }, { kind: "delete" }, { kind: "update" }])
})

test("reads a marker with a leading blank as context in a hunk", () => {
  const lines = [" *** Add File: n", " *** End of File", " *** End Patch", "+x"]
  expect(parsePatch(patch("*** Update File: a", ...lines))).toMatchObject([
    { hunks: [{ atEnd: false, lines: lines.map((line) => ({ text: line.slice(1) })) }] },
  ])
})

test("uses only the text after a unified hunk head as anchor", () => {
  const heads = ["@@ -1,2 +1,3 @@", "-a", "@@ -7 +8 @@ function b() {", "-b"]
  expect(parsePatch(patch("*** Update File: a", ...heads))).toMatchObject([
    { hunks: [{ anchors: [] }, { anchors: ["function b() {"] }] },
  ])
})

test("joins two updates of one path", () => {
  const text = patch("*** Update File: a", "-1", "*** Add File: b", "+x", "*** Update File: a", "-2")
  expect(parsePatch(text)).toMatchObject([{ path: "a", hunks: [{ line: 3 }, { line: 7 }] }, { path: "b" }])
})

describe("rejects, with the line,", () => {
  test.each([
    ["no envelope", "*** Add File: a\n+x", /no line "\*\*\* Begin Patch"/],
    ["cut off", "*** Begin Patch\n*** Add File: a\n+x", /cut off/],
    ["empty", patch(), /empty/],
    ["a second envelope", `${patch("*** Delete File: a")}\n*** Delete File: b`, /is not between/],
    ["an unknown head", patch("*** Rename File: a"), /line 2 .*expected \*\*\* Add File/],
    ["no path", patch("*** Delete File: "), /line 2 .*path is missing/],
    ["a new file without marks", patch("*** Add File: a", "x"), /line 3 .*must begin with "\+"/],
    ["lines below a delete", patch("*** Delete File: a", "-x"), /line 3 .*not contain other lines/],
    ["an update without hunks", patch("*** Update File: a"), /line 2 .*needs lines/],
    ["a hunk that changes nothing", patch("*** Update File: a", "@@", " x"), /line 3 .*changes nothing/],
    ["a line without a mark", patch("*** Update File: a", "-x", "y"), /line 4 .*expected a line/],
  ])("%s", (_, text, message) => {
    expect(() => parsePatch(text)).toThrow(PatchSyntaxError)
    expect(() => parsePatch(text)).toThrow(message)
  })
})

const word = fc.stringMatching(/^[^\r\n]{0,12}$/)
const path = fc.stringMatching(/^[a-z./ ]{0,8}[a-z]$/).map((name) => name.trim())
const changed = fc.constantFrom("add" as const, "remove" as const)
const hunk = fc.record({
  anchors: fc.array(
    word.filter((text) => text.trim() === text && text !== "" && !text.startsWith("-")),
    { maxLength: 2 },
  ),
  lines: fc
    .tuple(
      fc.array(fc.record({ kind: fc.constantFrom("context" as const, "add", "remove"), text: word })),
      fc.record({ kind: changed, text: word }),
    )
    .map(([lines, last]) => [...lines, last]),
  atEnd: fc.boolean(),
})
const section: fc.Arbitrary<PatchSection> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), path, lines: fc.array(word) }),
  fc.record({ kind: fc.constant("delete" as const), path }),
  fc.record({
    kind: fc.constant("update" as const),
    path,
    hunks: fc.array(
      hunk.map((value) => ({ ...value, line: 0 })),
      { minLength: 1, maxLength: 3 },
    ),
  }),
)

function written(given: PatchSection): string[] {
  switch (given.kind) {
    case "add":
      return [`*** Add File: ${given.path}`, ...given.lines.map((line) => `+${line}`)]
    case "delete":
      return [`*** Delete File: ${given.path}`]
    case "update":
      return [
        `*** Update File: ${given.path}`,
        ...given.hunks.flatMap(({ anchors, lines, atEnd }) => [
          ...(anchors.length === 0 ? ["@@"] : anchors.map((text) => `@@ ${text}`)),
          ...lines.map(({ kind, text }) => `${{ add: "+", remove: "-", context: " " }[kind]}${text}`),
          ...(atEnd ? ["*** End of File"] : []),
        ]),
      ]
  }
}

test("parses every generated patch", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(section, { selector: (given) => given.path, minLength: 1, maxLength: 4 }),
      (sections) => {
        const read = parsePatch(patch(...sections.flatMap(written)))
        const plain = JSON.parse(JSON.stringify(read, (key, value) => (key === "line" ? 0 : value)))
        expect(plain).toEqual(sections)
      },
    ),
  )
})

test("parses or rejects any text", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ...update,
      "*** Begin Patch",
      "*** End Patch",
      "*** Delete File: x",
      "*** Add File: y",
      "@@",
    ),
    word,
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.boolean(), (lines, wrapped) => {
      try {
        expect(parsePatch(wrapped ? patch(...lines) : lines.join("\n")).length).toBeGreaterThan(0)
      } catch (error) {
        expect(error).toBeInstanceOf(PatchSyntaxError)
      }
    }),
    { numRuns: runs(500) },
  )
})
