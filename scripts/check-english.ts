/** Lists the words and sentence openings that the style guide replaces: `node scripts/check-english.ts [path …]`. */
import { globSync, readFileSync, statSync } from "node:fs"
import { commentsOf, type Finding, findings, paragraphsOf, stringsOf } from "../test/english.ts"

const given = process.argv.slice(2)
const roots =
  given.length > 0
    ? given
    : [
        "src",
        "test",
        "docs",
        "scripts",
        "bench",
        "examples",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
      ]
const files = roots.flatMap((root) =>
  statSync(root).isDirectory() ? globSync(`${root}/**/*.{ts,md,mjs}`).toSorted() : [root],
)

function check(file: string): Finding[] {
  const text = readFileSync(file, "utf8")
  if (file.endsWith(".md")) return findings(paragraphsOf(text), { sentences: true })
  return [
    ...findings(commentsOf(text), { sentences: true }),
    ...findings(stringsOf(text), { sentences: false }),
  ].toSorted((a, b) => a.line - b.line)
}

let count = 0
for (const file of files) {
  if (/(^|\/)(fixtures|corpus|node_modules|results)\//.test(file) || file.endsWith("test/english.ts"))
    continue
  for (const { line, found, use } of check(file)) {
    count += 1
    console.log(`${file}:${line}: "${found}" (use: ${use})`)
  }
}
console.log(`${count} found`)
process.exitCode = count > 0 ? 1 : 0
