import { globSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { expect, test } from "vitest"
import { checkedFiles, checkFile, commentsOf, findings } from "./english.ts"

const root = resolve(import.meta.dirname, "..")

test("reports glossary words and sentence openings in comments", () => {
  const prose = commentsOf("/** Whoever opens one closes it. */\n// A person decides.\nconst person = 1\n")
  expect(findings(prose, { sentences: true })).toMatchObject([
    { line: 1, found: "Whoever" },
    { line: 1, found: "Whoever opens one closes it.…" },
    { line: 2, found: "person" },
  ])
})

test("uses the words of the style guide everywhere", () => {
  const files = checkedFiles.flatMap((pattern) => globSync(join(root, pattern)))
  expect(files.length).toBeGreaterThan(500)
  const found = files.flatMap((file) =>
    checkFile(file).map(
      ({ line, found, use }) => `${relative(root, file)}:${line}: "${found}" (use: ${use})`,
    ),
  )
  expect(found).toEqual([])
})
