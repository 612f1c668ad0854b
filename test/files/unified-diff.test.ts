import { applyPatch } from "diff"
import { expect, test } from "vitest"
import { unifiedDiff } from "../../src/files/unified-diff.ts"

const numbered = (from: number, to: number, prefix = "line") =>
  Array.from({ length: to - from }, (_, index) => `${prefix} ${from + index}\n`).join("")

test("shows changed lines with three lines of context, and can be applied", async () => {
  const before = numbered(0, 20)
  const after = before.replace("line 10\n", "line ten\n")
  const diff = await unifiedDiff({ path: "a.txt", before, after })
  expect(diff).toMatch(/^--- a\.txt\n\+\+\+ a\.txt\n@@ -8,7 \+8,7 @@\n line 7\n/)
  expect(diff).toContain("-line 10\n+line ten\n line 11\n")
  expect(applyPatch(before, diff)).toBe(after)
})

test("shows a new file as /dev/null, whatever its length", async () => {
  const diff = await unifiedDiff({ path: "a.txt", before: undefined, after: numbered(0, 1500) })
  expect(diff).toContain("--- /dev/null\n+++ a.txt\n@@ -0,0 +1,1500 @@\n+line 0\n")
})

test("marks a last line without line ending", async () => {
  expect(await unifiedDiff({ path: "a", before: "x\n", after: "x" })).toContain(
    "\\ No newline at end of file",
  )
})

test("cuts a long diff at a line, with a mark", async () => {
  const diff = await unifiedDiff({ path: "a", before: "", after: numbered(0, 5000) })
  expect(diff.length).toBeLessThan(20_100)
  expect(diff).toMatch(/\n\+line \d+\n\[The diff is cut here: \d+ of \d+ characters are shown\]\n$/)
})

test("shows only the new text if the texts have little in common", async () => {
  const diff = await unifiedDiff({ path: "a", before: numbered(0, 2000), after: numbered(0, 2000, "row") })
  expect(diff).toMatch(/^\[a changes almost everywhere\. This is its new text:\]\n\+row 0\n\+row 1\n/)
})

test("does not compare texts over a million characters", async () => {
  const before = "x\n".repeat(600_000)
  expect(await unifiedDiff({ path: "a", before, after: "y" })).toBe(
    "[a is too large to compare: the length changes from 1200000 to 1 characters]\n",
  )
})
