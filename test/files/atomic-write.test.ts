import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { writeAtomic } from "../../src/files/atomic-write.ts"
import { sameStamp, stampFile } from "../../src/files/file-tracker.ts"
import { untracked } from "../../src/files/temporary-files.ts"

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "tackle-atomic-"))
})

afterEach(() => rm(directory, { recursive: true, force: true }))

test("creates parent directories and returns the stamp of the written file", async () => {
  const path = join(directory, "a/b/c.txt")
  const stamp = await writeAtomic(path, Buffer.from("hello"), untracked)
  expect(await readFile(path, "utf8")).toBe("hello")
  expect(stamp).toEqual(await stampFile(path))
  expect(sameStamp(stamp, await stampFile(path))).toBe(true)
})

test("gives a new file the mode 0666 less the umask", async () => {
  const old = process.umask(0o027)
  try {
    const path = join(directory, "new")
    await writeAtomic(path, Buffer.from("x"), untracked)
    expect((await stat(path)).mode & 0o7777).toBe(0o640)
  } finally {
    process.umask(old)
  }
})

test.each([0o600, 0o755, 0o4711, 0o444])("keeps the mode %o", async (mode) => {
  const path = join(directory, "file")
  await writeFile(path, "old")
  await chmod(path, mode)
  await writeAtomic(path, Buffer.from("new"), untracked)
  expect((await stat(path)).mode & 0o7777).toBe(mode)
  expect(await readFile(path, "utf8")).toBe("new")
})

test.runIf(process.getuid?.() === 0)("keeps the owner as root", async () => {
  const { chown } = await import("node:fs/promises")
  const path = join(directory, "file")
  await writeFile(path, "old")
  await chown(path, 1234, 2345)
  await writeAtomic(path, Buffer.from("new"), untracked)
  expect(await stat(path)).toMatchObject({ uid: 1234, gid: 2345 })
})

test("replaces the file, so that open descriptors still read the old content", async () => {
  const path = join(directory, "file")
  await writeFile(path, "old")
  const before = await stat(path)
  await writeAtomic(path, Buffer.from("new"), untracked)
  expect((await stat(path)).ino).not.toBe(before.ino)
})

test("leaves no temporary file after a failure", async () => {
  const path = join(directory, "taken")
  await mkdir(path)
  await writeFile(join(path, "inside"), "x")
  await expect(writeAtomic(path, Buffer.from("x"), untracked)).rejects.toThrow()
  expect(await readdir(directory)).toEqual(["taken"])
})
