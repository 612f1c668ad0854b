/** Lists the words and sentence openings that the style guide replaces: `node scripts/check-english.ts [path …]`. */
import { globSync, statSync } from "node:fs"
import { checkedFiles, checkFile } from "../test/english.ts"

const given = process.argv.slice(2)
const patterns = given.map((path) => (statSync(path).isDirectory() ? `${path}/**/*.{ts,md,mjs}` : path))
let count = 0
for (const pattern of given.length > 0 ? patterns : checkedFiles)
  for (const file of globSync(pattern).toSorted())
    if (!/(^|\/)(fixtures|corpus|node_modules|results)\/|test\/english/.test(file))
      for (const { line, found, use } of checkFile(file)) {
        count += 1
        console.log(`${file}:${line}: "${found}" (use: ${use})`)
      }
console.log(`${count} found`)
process.exitCode = count > 0 ? 1 : 0
