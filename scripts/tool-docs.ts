/**
 * Generates `docs/tools/` and `src/tools/schemas.json` from the built-in tools. A test fails if these files are out of
 * date.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { toolPages, toolSchemas } from "./tool-pages.ts"

const directory = resolve(import.meta.dirname, "../docs/tools")
const pages = await toolPages()
rmSync(directory, { recursive: true, force: true })
mkdirSync(directory, { recursive: true })
for (const [name, text] of pages) writeFileSync(join(directory, name), text)
writeFileSync(
  resolve(import.meta.dirname, "../src/tools/schemas.json"),
  `${JSON.stringify(await toolSchemas(), null, 2)}\n`,
)
