import { expect, test } from "vitest"
import type { Page } from "../../../src/tools/web/fetch-page.ts"
import { createPageCache } from "../../../src/tools/web/page-cache.ts"

function page(bytes: number): Page {
  const url = new URL("https://example.com/")
  return { url, contentType: "", body: Buffer.alloc(bytes), asked: [url], cacheable: true }
}

test("keeps a page for 15 minutes", () => {
  let now = 0
  const cache = createPageCache(() => now)
  const first = page(1)
  cache.set("a", first)
  now = 15 * 60_000 - 1
  expect(cache.get("a")).toBe(first)
  now += 1
  expect(cache.get("a")).toBeUndefined()
})

test("drops the oldest pages above 50 MB", () => {
  const cache = createPageCache(() => 0)
  for (const key of ["a", "b", "c"]) cache.set(key, page(20 * 1024 * 1024))
  expect(["a", "b", "c"].map((key) => cache.get(key) !== undefined)).toEqual([false, true, true])
  cache.set("b", page(1))
  cache.set("d", page(20 * 1024 * 1024))
  expect(["b", "c", "d"].map((key) => cache.get(key) !== undefined)).toEqual([true, true, true])
})
