import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs"
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { commitFiles, type FileStep } from "../../src/files/commit-files.ts"
import type { TemporaryFile, TrackTemporary } from "../../src/files/temporary-files.ts"

let directory: string

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-commit-")))
  for (const name of ["a", "b"]) await writeFile(join(directory, name), "old")
})

afterEach(() => rm(directory, { recursive: true, force: true }))

const at = (name: string) => join(directory, name)

const rewrite = (path: string): FileStep => ({ path, exists: true, bytes: Buffer.from("new") })

/** Replaces the first backup with a directory when the second backup is recorded, so that it cannot be removed. */
function spoilFirstBackup() {
  const written = new Set<TemporaryFile>()
  const told: string[] = []
  const backups: string[] = []
  const trackTemporary: TrackTemporary = (file) => {
    written.add(file)
    if (file.backupOf !== undefined) backups.push(file.path)
    const [first] = backups
    if (first !== undefined && backups.length === 2 && file.path === backups[1]) {
      rmSync(first)
      mkdirSync(first)
    }
    return { done: () => written.delete(file), failed: () => told.push(file.path) }
  }
  return { trackTemporary, left: () => [...written].map(({ path }) => path), backups, told }
}

/** Returns the number of open descriptors of the directory, or undefined on systems without `/proc`. */
function openedTimes(): number | undefined {
  if (!existsSync("/proc/self/fd")) return undefined
  const targets = readdirSync("/proc/self/fd").map((name) => {
    try {
      return readlinkSync(join("/proc/self/fd", name))
    } catch {
      return ""
    }
  })
  return targets.filter((target) => target === directory).length
}

describe("a backup that cannot be removed", () => {
  test("does not fail the change, keeps its record and is reported", async () => {
    const { trackTemporary, left, backups, told } = spoilFirstBackup()
    const before = openedTimes()
    const stamps = await commitFiles([rewrite(at("a")), rewrite(at("b"))], trackTemporary)
    expect([...stamps.keys()]).toEqual([at("a"), at("b")])
    expect(await readFile(at("a"), "utf8")).toBe("new")
    expect(await readFile(at("b"), "utf8")).toBe("new")
    expect(backups).toHaveLength(2)
    expect(left()).toEqual([backups[0]])
    expect(told).toEqual([backups[0]])
    expect(openedTimes()).toBe(before)
  })

  test("leaves no other temporary file", async () => {
    const { trackTemporary, backups } = spoilFirstBackup()
    await commitFiles([rewrite(at("a")), rewrite(at("b"))], trackTemporary)
    const names = readdirSync(directory).filter((name) => name !== "a" && name !== "b")
    expect(names.map(at)).toEqual([backups[0]])
  })
})
