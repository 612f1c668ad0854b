import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { expect, test } from "vitest"
import { toolPages, toolSchemas } from "../scripts/tool-pages.ts"
import schemas from "../src/tools/schemas.json" with { type: "json" }

const directory = resolve(import.meta.dirname, "../docs/tools")

test("docs/tools matches the tools; else run `node scripts/tool-docs.ts`", async () => {
  const written = readdirSync(directory).sort()
  const kept = new Map(written.map((name) => [name, readFileSync(join(directory, name), "utf8")]))
  const pages = await toolPages()
  expect([...kept.keys()]).toEqual([...pages.keys()].sort())
  for (const [name, text] of pages) expect(kept.get(name), name).toBe(text)
})

test("src/tools/schemas.json matches the tools; else run `node scripts/tool-docs.ts`", async () => {
  expect(schemas).toEqual(await toolSchemas())
})
