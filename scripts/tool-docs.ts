/** Writes `docs/tools/`: a page for each built-in tool. A test says when the pages are stale. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { toolPages } from "./tool-pages.ts"

const directory = resolve(import.meta.dirname, "../docs/tools")
const pages = await toolPages()
rmSync(directory, { recursive: true, force: true })
mkdirSync(directory, { recursive: true })
for (const [name, text] of pages) writeFileSync(join(directory, name), text)
