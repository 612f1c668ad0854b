import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createFileTracker, sameStamp, stampBytes, stampFile } from "../../src/files/file-tracker.ts"

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "tackle-tracker-"))
})

afterEach(() => rm(directory, { recursive: true, force: true }))

test("remembers the last stamp of each path", () => {
  const tracker = createFileTracker()
  expect(tracker.seen("/a")).toBeUndefined()
  tracker.record("/a", { size: 1, mtimeMs: 1 })
  tracker.record("/a", { size: 2, mtimeMs: 2 })
  expect(tracker.seen("/a")).toEqual({ size: 2, mtimeMs: 2 })
  expect(tracker.seen("/b")).toBeUndefined()
})

test("gives a file and its bytes the same stamp", async () => {
  const path = join(directory, "file")
  await writeFile(path, "hello")
  const stamp = await stampFile(path)
  expect(stampBytes(Buffer.from("hello"), stamp.mtimeMs)).toEqual(stamp)
})

test("compares content, not times", async () => {
  const path = join(directory, "file")
  await writeFile(path, "hello")
  const before = await stampFile(path)
  await utimes(path, 1, 1)
  expect(sameStamp(before, await stampFile(path))).toBe(true)
  await writeFile(path, "jello")
  await utimes(path, before.mtimeMs / 1000, before.mtimeMs / 1000)
  expect(sameStamp(before, await stampFile(path))).toBe(false)
})

test("compares size and time without digests", () => {
  const stamp = { size: 5, mtimeMs: 7 }
  expect(sameStamp(stamp, { ...stamp, digest: "x" })).toBe(true)
  expect(sameStamp(stamp, { ...stamp, mtimeMs: 8 })).toBe(false)
  expect(sameStamp(stamp, { ...stamp, size: 6 })).toBe(false)
})

test("runs work on one path in order, and on different paths concurrently", async () => {
  const tracker = createFileTracker()
  const order: string[] = []
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const first = tracker.lock(["/a"], async () => {
    order.push("first in")
    await gate
    order.push("first out")
  })
  const second = tracker.lock(["/a"], async () => {
    order.push("second")
    return 2
  })
  await tracker.lock(["/b"], async () => {
    order.push("other")
  })
  expect(order).toEqual(["first in", "other"])
  open()
  await first
  expect(await second).toBe(2)
  expect(order).toEqual(["first in", "other", "first out", "second"])
})

test("releases the lock after a failure", async () => {
  const tracker = createFileTracker()
  const failed = tracker.lock(["/a"], async () => {
    throw new Error("no")
  })
  const next = tracker.lock(["/a"], async () => "yes")
  await expect(failed).rejects.toThrow("no")
  expect(await next).toBe("yes")
})
