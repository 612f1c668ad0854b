import { createHash, randomBytes } from "node:crypto"
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unlessMissing } from "../util/file-system.ts"

/** What a content store may hold. */
export interface ContentLimits {
  /** Of one file, in bytes. Larger ones are not kept. */
  fileBytes: number
  /** Of all together, in bytes. What was not used for longest goes first. */
  totalBytes: number
  /** Days since the last use. */
  days: number
}

/** Half a gigabyte holds thousands of turns; a week is how long outputs are kept too. */
export const defaultContentLimits: ContentLimits = {
  fileBytes: 16 * 1024 * 1024,
  totalBytes: 512 * 1024 * 1024,
  days: 7,
}

/** The bytes of files by their sha256, each once, readable by the person alone. */
export interface ContentStore {
  /** Larger files are not kept. */
  readonly fileBytes: number
  /** Keeps the bytes and returns their hash; undefined where they are too large to be kept. On disk when it resolves. */
  put(bytes: Uint8Array): Promise<string | undefined>
  /** Undefined where they are not kept, or no longer what they were. */
  get(hash: string): Promise<Uint8Array | undefined>
  /** Removes what is too old, then what is too much. What another process removes meanwhile is no fault. */
  sweep(now?: number): Promise<void>
}

/** The store in the directory `root`, which is made with the first bytes. */
export function createContentStore(root: string, limits: ContentLimits = defaultContentLimits): ContentStore {
  // A long session must not wait for its end to keep to the quota.
  const sweepEvery = limits.totalBytes / 8
  let sinceSweep = 0

  return {
    fileBytes: limits.fileBytes,
    async put(bytes) {
      if (bytes.length > limits.fileBytes) return undefined
      const hash = hashOf(bytes)
      const path = placeOf(root, hash)
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
      const bytes = await unlessMissing(readFile(placeOf(root, hash)))
      return bytes && hashOf(bytes) === hash ? bytes : undefined
    },
    sweep: (now = Date.now()) => sweepContents(root, limits, now),
  }
}

/** The name under which bytes are kept: their sha256 in hex. */
export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex")
}

function placeOf(root: string, hash: string): string {
  return join(root, hash.slice(0, 2), hash)
}

/** True if a whole file is there; its time of last use is now. */
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
