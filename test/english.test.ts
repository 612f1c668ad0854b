import { globSync, readFileSync } from "node:fs"
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

test("starts no paragraph of the docs in the middle of a sentence", () => {
  const pages = ["*.md", "docs/**/*.md"].flatMap((pattern) => globSync(join(root, pattern)))
  const found = pages.flatMap((page) =>
    readFileSync(page, "utf8")
      .replaceAll(/^```[\s\S]*?^```/gm, "`code`")
      .split(/\n\s*\n/)
      .filter((paragraph) => /^[a-z]/.test(paragraph))
      .map((paragraph) => `${relative(root, page)}: ${paragraph.split("\n", 1)[0]}`),
  )
  expect(found).toEqual([])
})
