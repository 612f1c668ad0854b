import { createHash, randomBytes } from "node:crypto"
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unlessMissing } from "../util/file-system.ts"

/** Limits of a content store. */
export interface ContentLimits {
  /** Maximum size of one file in bytes. Larger files are not stored. */
  fileBytes: number
  /** Maximum size of all files in bytes. The least recently used files are removed first. */
  totalBytes: number
  /** Number of days since the last use after which a file is removed. */
  days: number
}

/** Default limits. Half a gigabyte holds thousands of turns. The contents are kept for a week, like full outputs. */
export const defaultContentLimits: ContentLimits = {
  fileBytes: 16 * 1024 * 1024,
  totalBytes: 512 * 1024 * 1024,
  days: 7,
}

/** Stores file contents by their SHA-256. Identical contents are stored once. Only the user can read them. */
export interface ContentStore {
  /** Maximum size of one file in bytes. Larger files are not stored. */
  readonly fileBytes: number
  /**
   * Stores the bytes and returns their hash, or undefined if they are too large. When it resolves, the bytes are on
   * disk.
   */
  put(bytes: Uint8Array): Promise<string | undefined>
  /** Returns the content with this hash, or undefined if it is missing or damaged. */
  get(hash: string): Promise<Uint8Array | undefined>
  /**
   * Removes contents that exceed the age limit, then the least recently used contents until the size limit is met.
   * Ignores files that another process removes.
   */
  sweep(now?: number): Promise<void>
}

/** Opens the store in the directory `root`. The first content creates the directory. */
export function createContentStore(root: string, limits: ContentLimits = defaultContentLimits): ContentStore {
  // Removes old contents whenever new contents of an eighth of the size limit have been stored, so that long sessions
  // also stay within the limit.
  const sweepEvery = limits.totalBytes / 8
  let sinceSweep = 0

  return {
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
      if (!/^[0-9a-f]{64}$/.test(hash)) return undefined
      const bytes = await unlessMissing(readFile(pathOf(root, hash)))
      return bytes && hashOf(bytes) === hash ? bytes : undefined
    },
    sweep: (now = Date.now()) => sweepContents(root, limits, now),
  }
}

/** Returns the SHA-256 of the bytes in hex. */
export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex")
}

function pathOf(root: string, hash: string): string {
  return join(root, hash.slice(0, 2), hash)
}

/** Returns true if the file exists and is complete. Also updates the time of the file's last use. */
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
  const kept: { path: string; size: number; usedAt: number }[] = []
  for (const group of (await unlessMissing(readdir(root))) ?? []) {
    for (const name of (await unlessMissing(readdir(join(root, group)))) ?? []) {
      const path = join(root, group, name)
      const found = await unlessMissing(stat(path))
      if (found) kept.push({ path, size: found.size, usedAt: found.mtimeMs })
    }
  }
  const dayMs = 24 * 60 * 60 * 1000
  let room = limits.totalBytes
  for (const { path, size, usedAt } of kept.sort((a, b) => b.usedAt - a.usedAt)) {
    room -= size
    if (room < 0 || now - usedAt > limits.days * dayMs) await rm(path, { force: true })
  }
}
