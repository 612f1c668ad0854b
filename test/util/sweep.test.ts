import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { dayMs, sweepDirectory } from "../../src/util/sweep.ts"

const now = Date.UTC(2026, 0, 31)

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tackle-sweep-"))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Creates a directory with one file of `bytes` bytes. Sets the age of the directory and the file in days. */
async function entry(
  root: string,
  name: string,
  { days, fileDays = days, bytes = 4 }: Record<string, number>,
) {
  const at = (age: number | undefined) => new Date(now - (age ?? 0) * dayMs)
  const file = join(root, name, "inner", "output.txt")
  await mkdir(join(root, name, "inner"), { recursive: true })
  await writeFile(file, "x".repeat(bytes))
  await utimes(file, at(fileDays), at(fileDays))
  for (const path of [join(root, name, "inner"), join(root, name)]) await utimes(path, at(days), at(days))
}

test("uses the time of the last write at any depth", async () => {
  const root = await temporaryDirectory()
  await entry(root, "old", { days: 8 })
  await entry(root, "fresh", { days: 8, fileDays: 6 })
  await entry(root, "fresh-directory", { days: 6, fileDays: 8 })
  await writeFile(join(root, "file.txt"), "x")
  await utimes(join(root, "file.txt"), new Date(now - 9 * dayMs), new Date(now - 9 * dayMs))
  await sweepDirectory(root, { days: 7 }, { now })
  expect((await readdir(root)).sort()).toEqual(["fresh", "fresh-directory"])
})

test("removes the oldest entries beyond the quota but keeps the newest", async () => {
  const root = await temporaryDirectory()
  await entry(root, "newest", { days: 1, bytes: 60_000 })
  await entry(root, "middle", { days: 2, bytes: 60_000 })
  await entry(root, "oldest", { days: 3, bytes: 60_000 })
  const directories = 4 * 8_192
  await sweepDirectory(root, { days: 7, bytes: 120_000 + directories }, { now })
  expect((await readdir(root)).sort()).toEqual(["middle", "newest"])
  await sweepDirectory(root, { days: 7, bytes: 10 }, { now })
  expect(await readdir(root)).toEqual(["newest"])
})

test("keeps spared entries of any age and size", async () => {
  const root = await temporaryDirectory()
  for (const name of ["ses_1", "ses_2"]) await entry(root, name, { days: 30 })
  await sweepDirectory(root, { days: 7, bytes: 1 }, { now, spare: async (name) => name === "ses_2" })
  expect(await readdir(root)).toEqual(["ses_2"])
})

test("removes a link and keeps its target", async () => {
  const [root, other] = [await temporaryDirectory(), await temporaryDirectory()]
  await writeFile(join(other, "precious.txt"), "x")
  await symlink(other, join(root, "link"))
  await sweepDirectory(root, { days: 7 }, { now: Date.now() + 8 * dayMs })
  expect(await readdir(root)).toEqual([])
  expect(existsSync(join(other, "precious.txt"))).toBe(true)
})

test("ignores a missing directory", async () => {
  const root = join(await temporaryDirectory(), "missing")
  await sweepDirectory(root, { days: 7 })
  expect(existsSync(root)).toBe(false)
})
