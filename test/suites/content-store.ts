import { expect, test } from "vitest"
import { type ContentLimits, type ContentStore, hashOf } from "../../src/store/content-store.ts"

/** An empty content store, and functions that simulate the passage of time and damage. */
export interface OpenedContents {
  store: ContentStore
  /** Returns the number of stored contents. */
  count(): Promise<number>
  /** Sets the last use of a content. Absent if the storage sets it itself. */
  setUsed?(hash: string, time: number): Promise<void>
  /** Replaces the bytes of a content. */
  damage(hash: string): Promise<void>
  close(): Promise<void>
}

const limits: ContentLimits = { fileBytes: 10_000, totalBytes: 25_000, days: 7 }
const bytes = (letter: string, size: number) => Buffer.alloc(size, letter)
const day = 86_400_000

/** Tests one implementation of `ContentStore`. `open` returns an empty store with the given limits. */
export function testContentStore(open: (limits: ContentLimits) => Promise<OpenedContents>): void {
  async function using(work: (opened: OpenedContents) => Promise<void>): Promise<void> {
    const opened = await open(limits)
    try {
      await work(opened)
    } finally {
      await opened.close()
    }
  }

  test("stores each content once, and returns it", () =>
    using(async ({ store, count }) => {
      const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
      for (const content of [bytes("a", 10), every, Buffer.alloc(0)]) {
        const [hash, again] = [await store.put(content), await store.put(content)]
        expect(hash).toBe(hashOf(content))
        expect(again).toBe(hash)
        expect(Buffer.from((await store.get(hash ?? "")) ?? "missing")).toEqual(content)
      }
      expect(await count()).toBe(3)
    }))

  test("stores one content for several writers at the same time", () =>
    using(async ({ store, count }) => {
      const hashes = await Promise.all(Array.from({ length: 8 }, () => store.put(bytes("a", 5_000))))
      expect(new Set(hashes).size).toBe(1)
      expect(await count()).toBe(1)
    }))

  test("refuses a content that is too large", () =>
    using(async ({ store, count }) => {
      expect(store.fileBytes).toBe(10_000)
      expect(await store.put(bytes("a", 10_001))).toBeUndefined()
      expect(await count()).toBe(0)
    }))

  test("returns nothing for missing or damaged content and for invalid hashes", () =>
    using(async ({ store, damage }) => {
      const hash = (await store.put(bytes("a", 10))) ?? ""
      await damage(hash)
      expect(await store.get(hash)).toBeUndefined()
      expect(await store.get(hashOf(bytes("b", 1)))).toBeUndefined()
      for (const wrong of ["", "../../etc/passwd", "%27", hash.toUpperCase()])
        expect(await store.get(wrong)).toBeUndefined()
    }))

  test("removes old content", () =>
    using(async ({ store, setUsed, count }) => {
      const old = (await store.put(bytes("a", 10))) ?? ""
      const now = setUsed ? Date.now() : Date.now() + 8 * day
      await setUsed?.(old, now - 8 * day)
      if (setUsed) await store.put(bytes("b", 10))
      await store.sweep(now - 2 * day)
      expect(await store.get(old)).toBeDefined()
      await store.sweep(now)
      expect(await store.get(old)).toBeUndefined()
      expect(await count()).toBe(setUsed ? 1 : 0)
    }))

  test("keeps content that is used again", () =>
    using(async ({ store, setUsed }) => {
      const hash = (await store.put(bytes("a", 10))) ?? ""
      await setUsed?.(hash, Date.now() - 8 * day)
      await store.put(bytes("a", 10))
      await store.sweep()
      expect(await store.get(hash)).toBeDefined()
    }))

  test("removes the least recently used content beyond the size limit", () =>
    using(async ({ store, setUsed, count }) => {
      const now = Date.now()
      const hashes: string[] = []
      for (const [letter, days] of Object.entries({ b: 3, c: 2, d: 1 })) {
        const hash = (await store.put(bytes(letter, 10_000))) ?? ""
        hashes.push(hash)
        await setUsed?.(hash, now - days * day)
      }
      await store.sweep(now)
      expect(await count()).toBe(2)
      const kept = await Promise.all(hashes.map(async (hash) => (await store.get(hash)) !== undefined))
      if (setUsed) expect(kept).toEqual([false, true, true])
    }))
}
