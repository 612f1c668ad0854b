import { randomBytes } from "node:crypto"
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unlessMissing } from "../util/file-system.ts"
import {
  beyondLimits,
  type ContentLimits,
  type ContentStore,
  defaultContentLimits,
  hashOf,
  isHash,
  type StoredContent,
} from "./content-store.ts"

/**
 * Opens the content store in the directory `root`, which only the user can read. Creates the directory when the first
 * content is stored.
 */
export function createContentDirectory(
  root: string,
  limits: ContentLimits = defaultContentLimits,
): ContentStore {
  // Also sweeps each time new contents add up to an eighth of the size limit, so that long sessions stay within the
  // limit.
  const sweepEvery = limits.totalBytes / 8
  let sinceSweep = 0

  return {
    isShared: false,
    fileBytes: limits.fileBytes,
    async put(bytes) {
      if (bytes.length > limits.fileBytes) return undefined
      const hash = hashOf(bytes)
      const path = pathOf(root, hash)
      if (await touch(path, bytes.length)) return hash
      await writeOnce(path, bytes)
      sinceSweep += bytes.length
      if (sinceSweep > sweepEvery) {
        sinceSweep = 0
        await sweepContents(root, limits, Date.now())
      }
      return hash
    },
    async get(hash) {
      if (!isHash(hash)) return undefined
      const bytes = await unlessMissing(readFile(pathOf(root, hash)))
      return bytes && hashOf(bytes) === hash ? bytes : undefined
    },
    sweep: (now = Date.now()) => sweepContents(root, limits, now),
  }
}

function pathOf(root: string, hash: string): string {
  return join(root, hash.slice(0, 2), hash)
}

/** If the file exists and is complete, updates the time of its last use and returns true. Otherwise, returns false. */
async function touch(path: string, size: number): Promise<boolean> {
  const found = await unlessMissing(stat(path))
  if (found?.size !== size) return false
  const now = new Date()
  await unlessMissing(utimes(path, now, now))
  return true
}

async function writeOnce(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`
  try {
    const handle = await open(temporary, "wx", 0o600)
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function sweepContents(root: string, limits: ContentLimits, now: number): Promise<void> {
  const kept: StoredContent[] = []
  for (const group of (await unlessMissing(readdir(root))) ?? []) {
    for (const name of (await unlessMissing(readdir(join(root, group)))) ?? []) {
      const path = join(root, group, name)
      const found = await unlessMissing(stat(path))
      if (found) kept.push({ name: path, size: found.size, usedAt: found.mtimeMs })
    }
  }
  for (const { name } of beyondLimits(kept, limits, now)) await rm(name, { force: true })
}
