import { stripVTControlCharacters } from "node:util"
import * as fc from "fast-check"
import { expect, test } from "vitest"
import { loadMarkdown } from "../../../src/cli/view/markdown.ts"
import { createMarkdownBlocks } from "../../../src/view/markdown-blocks.ts"
import { columns } from "../../../src/view/visible.ts"

function blocksOf(text: string, size = text.length || 1): string[] {
  const { push, end } = createMarkdownBlocks()
  const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  )
  return [...pieces.flatMap(push), ...end()]
}

test("splits text into blocks, and keeps code and the parts of a list together", () => {
  expect(blocksOf("# Title\n\nOne\ntwo\n\n\nthree")).toEqual(["# Title", "One\ntwo", "three"])
  expect(blocksOf("```js\na\n\nb\n```\n\nend")).toEqual(["```js\na\n\nb\n```", "end"])
  expect(blocksOf("- a\n\n  ```\n  x\n\n  y\n  ```\n\n  b\n\nend")).toEqual([
    "- a\n\n  ```\n  x\n\n  y\n  ```\n\n  b",
    "end",
  ])
  expect(blocksOf("````\n```\n\n````\n\nend")).toEqual(["````\n```\n\n````", "end"])
})

test("completes a paragraph at its empty line", () => {
  const { push, rest } = createMarkdownBlocks()
  expect(push("one\ntwo\n")).toEqual([])
  expect(push("\nthr")).toEqual(["one\ntwo"])
  expect(rest()).toBe("thr")
})

test("loses no word, and splits the same however the text arrives", () => {
  const line = fc.constantFrom(
    "",
    "",
    "word",
    "- item",
    "  more",
    "```",
    "~~~",
    "1. one",
    "# Title",
    "| a | b |",
  )
  fc.assert(
    fc.property(fc.array(line), fc.integer({ min: 1, max: 7 }), (lines, size) => {
      const text = lines.join("\n")
      expect(blocksOf(text, size)).toEqual(blocksOf(text))
      expect(blocksOf(text).join("\n").split(/\s+/).join("")).toBe(text.split(/\s+/).join(""))
    }),
  )
})

const sample = `# Title

A **bold** word, \`code\` and a [link](https://example.org) in a sentence that is longer than a line.

- one
- two

| name | value |
|---|---:|
| alpha | 1 |

\`\`\`js
const one = 1
\`\`\`
`

test.each([80, 40, 20])("renders text, lists, tables and code in %i columns", async (width) => {
  const lines = (await loadMarkdown())(sample, width).map(stripVTControlCharacters)
  expect(lines[0]).toBe("Title")
  expect(lines.join(" ")).toMatch(/A bold word, code and a link/)
  expect(lines).toContain("- two")
  expect(lines.join("\n")).toMatch(/│ alpha │ 1 +│/)
  expect(lines).toContain("  const one = 1")
  for (const each of lines) expect(columns(each)).toBeLessThanOrEqual(width)
})

test("shows control characters as text, and numbers and dollars unchanged", async () => {
  const render = await loadMarkdown()
  expect(render("a \u001b[2Jb\u202e", 80)).toEqual(["a <U+001B>[2Jb<U+202E>"])
  expect(render("$5 and $6, x_1_2", 80)).toEqual(["$5 and $6, x_1_2"])
})
