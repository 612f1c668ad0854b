import { resolve } from "node:path"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { expect, test } from "vitest"

/** Maximum size of the compressed client in bytes. */
const maxSize = 7_000

test("the client is small and runs in a browser", async () => {
  const input = resolve(import.meta.dirname, "../../src/client/index.ts")
  const bundle = await rolldown({ input, platform: "browser", external: /^node:/ })
  const { output } = await bundle.generate({ format: "esm", minify: true })
  expect(output).toHaveLength(1)
  const [{ code, imports, moduleIds }] = output
  expect(imports).toEqual([])
  expect(code).not.toMatch(/node:|\bprocess\b|\bBuffer\b|\brequire\(/)
  const folders = new Set(moduleIds.map((id) => /(src\/\w+|node_modules\/[\w-]+)\//.exec(id)?.[1]))
  expect([...folders].sort()).toEqual(["node_modules/eventsource-parser", "src/client"])
  expect(gzipSync(code).length).toBeLessThan(maxSize)
})
