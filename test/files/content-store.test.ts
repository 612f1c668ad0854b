import { readdir, stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createContentStore, hashOf } from "../../src/files/content-store.ts"
import { temporaryProject } from "../../src/testing/project.ts"

const limits = { fileBytes: 100, totalBytes: 250, days: 7 }
const bytes = (letter: string, size: number) => Buffer.alloc(size, letter)

async function files(root: string): Promise<string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true })
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

test("stores each content once, readable only by the user, and returns it", async () => {
  const project = await temporaryProject()
  const store = createContentStore(project.directory, limits)
  const [hash, again] = [await store.put(bytes("a", 10)), await store.put(bytes("a", 10))]
  expect(hash).toBe(again)
  const [path = ""] = await files(project.directory)
  expect(await files(project.directory)).toHaveLength(1)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await store.get(hash ?? "")).toEqual(bytes("a", 10))
  expect(await store.put(bytes("a", 101))).toBeUndefined()
  await project.remove()
})

test("returns nothing for missing or damaged content and for invalid hashes", async () => {
  const project = await temporaryProject()
  const store = createContentStore(project.directory, limits)
  const hash = (await store.put(bytes("a", 10))) ?? ""
  await writeFile((await files(project.directory))[0] ?? "", "another one")
  expect(await store.get(hash)).toBeUndefined()
  expect(await store.get(hashOf(bytes("b", 1)))).toBeUndefined()
  expect(await store.get("../../etc/passwd")).toBeUndefined()
  // A damaged copy is replaced by a whole one.
  await store.put(bytes("a", 10))
  expect(await store.get(hash)).toEqual(bytes("a", 10))
  await project.remove()
})

test("removes old content first, then the least recently used", async () => {
  const project = await temporaryProject()
  const store = createContentStore(project.directory, { ...limits, totalBytes: 25_000, fileBytes: 10_000 })
  const now = Date.now()
  const hashes: string[] = []
  for (const [letter, days] of Object.entries({ a: 8, b: 3, c: 2, d: 1 })) {
    const hash = (await store.put(bytes(letter, 10_000))) ?? ""
    hashes.push(hash)
    const used = new Date(now - days * 86_400_000)
    await utimes(join(project.directory, hash.slice(0, 2), hash), used, used)
  }
  await store.sweep(now)
  const kept = await Promise.all(hashes.map(async (hash) => (await store.get(hash)) !== undefined))
  expect(kept).toEqual([false, false, true, true])
  await project.remove()
})
