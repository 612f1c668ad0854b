import { join } from "node:path"
import { expect, test } from "vitest"
import { createRandom, editsOfCode, linesOf, type RealEdit } from "../../../bench/edit-set/edits.ts"
import { judge } from "../../../bench/edit-set/measure.ts"

// Code that does not change with this project, so that a failure shows an error of the matching.
const source = join(import.meta.dirname, "../../../node_modules/zod/src")
const edits = editsOfCode(source, 300, createRandom(90_817))

/** How a model escapes both texts once too often. */
const forms: Record<string, (text: string) => string> = {
  "line ends and tabs": (text) => text.replaceAll("\n", "\\n").replaceAll("\t", "\\t"),
  "line ends alone": (text) => text.replaceAll("\n", "\\n"),
  "the whole text": (text) => JSON.stringify(text).slice(1, -1),
}

/** Indents with tabs, as in Go. */
const withTabs = (text: string) => text.replace(/^(?: {2})+/gm, (indent) => "\t".repeat(indent.length / 2))

function textsOf(edit: RealEdit, indent: (text: string) => string) {
  const side = (kind: "old" | "new") =>
    edit.lines
      .filter((line) => line.kind === "kept" || line.kind === kind)
      .map(({ text }) => text)
      .join("\n")
  const end = edit.after === "" ? "" : "\n"
  const file = indent(edit.before + side("old") + end + edit.after)
  return { path: "", file, old: indent(side("old")), fresh: indent(side("new")) }
}

test.each(
  Object.entries(forms).flatMap(([name, write]) => [
    [`${name}, indented with spaces`, write, (text: string) => text] as const,
    [`${name}, indented with tabs`, write, withTabs] as const,
  ]),
)("applies edits with an extra level of escapes in %s, and none wrongly", (_, write, indent) => {
  const tally = { right: 0, refused: 0, wrong: 0 }
  for (const edit of edits) {
    const { old, fresh, ...texts } = textsOf(edit, indent)
    if (linesOf(edit, "old").length === 0 || !old.includes("\n") || texts.file.split(old).length !== 2)
      continue
    const expected = texts.file.replace(old, () => fresh)
    tally[judge({ ...texts, kind: "", oldString: write(old), newString: write(fresh), expected })] += 1
  }
  expect(tally.wrong).toBe(0)
  expect(tally.right).toBeGreaterThan(50)
  // The rest has escapes outside strings, such as in regular expressions, which cannot be distinguished.
  expect(tally.right / (tally.right + tally.refused)).toBeGreaterThan(0.93)
})
