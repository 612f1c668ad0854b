import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createFileTracker, sameStamp, stampBytes, stampFile } from "../../src/files/file-tracker.ts"

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "tackle-ledger-"))
})

afterEach(() => rm(directory, { recursive: true, force: true }))

test("remembers the last stamp of each path", () => {
  const ledger = createFileTracker()
  expect(ledger.seen("/a")).toBeUndefined()
  ledger.record("/a", { size: 1, mtimeMs: 1 })
  ledger.record("/a", { size: 2, mtimeMs: 2 })
  expect(ledger.seen("/a")).toEqual({ size: 2, mtimeMs: 2 })
  expect(ledger.seen("/b")).toBeUndefined()
})

test("a file and its bytes have one stamp", async () => {
  const path = join(directory, "file")
  await writeFile(path, "hello")
  const stamp = await stampFile(path)
  expect(stampBytes(Buffer.from("hello"), stamp.mtimeMs)).toEqual(stamp)
})

test("bytes decide, not times", async () => {
  const path = join(directory, "file")
  await writeFile(path, "hello")
  const before = await stampFile(path)
  await utimes(path, 1, 1)
  expect(sameStamp(before, await stampFile(path))).toBe(true)
  await writeFile(path, "jello")
  await utimes(path, before.mtimeMs / 1000, before.mtimeMs / 1000)
  expect(sameStamp(before, await stampFile(path))).toBe(false)
})

test("without digests size and time decide", () => {
  const stamp = { size: 5, mtimeMs: 7 }
  expect(sameStamp(stamp, { ...stamp, digest: "x" })).toBe(true)
  expect(sameStamp(stamp, { ...stamp, mtimeMs: 8 })).toBe(false)
  expect(sameStamp(stamp, { ...stamp, size: 6 })).toBe(false)
})

test("work on one path runs in order and never at once, work on another beside it", async () => {
  const ledger = createFileTracker()
  const order: string[] = []
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const first = ledger.lock(["/a"], async () => {
    order.push("first in")
    await gate
    order.push("first out")
  })
  const second = ledger.lock(["/a"], async () => {
    order.push("second")
    return 2
  })
  await ledger.lock(["/b"], async () => {
    order.push("other")
  })
  expect(order).toEqual(["first in", "other"])
  open()
  await first
  expect(await second).toBe(2)
  expect(order).toEqual(["first in", "other", "first out", "second"])
})

test("work that fails lets the next in", async () => {
  const ledger = createFileTracker()
  const failed = ledger.lock(["/a"], async () => {
    throw new Error("no")
  })
  const next = ledger.lock(["/a"], async () => "yes")
  await expect(failed).rejects.toThrow("no")
  expect(await next).toBe("yes")
})
