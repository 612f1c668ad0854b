import { createHash } from "node:crypto"
import { dayMs } from "../util/sweep.ts"

/** Limits for a content store. */
export interface ContentLimits {
  /** Maximum size of one file in bytes. Larger files are not stored. */
  fileBytes: number
  /** Maximum size of all files in bytes. The least recently used files are removed first. */
  totalBytes: number
  /** Number of days after which an unused file is removed. */
  days: number
}

/** Default limits: half a gigabyte, which is enough for thousands of turns, and a week, as for full outputs. */
export const defaultContentLimits: ContentLimits = {
  fileBytes: 16 * 1024 * 1024,
  totalBytes: 512 * 1024 * 1024,
  days: 7,
}

/**
 * Stores file contents by their SHA-256. Identical contents are stored once. Every implementation passes
 * `test/suites/content-store.ts`.
 */
export interface ContentStore {
  /**
   * True if other machines can read the contents. If so, the contents after a change are also stored, so that another
   * machine can rebuild a session's files.
   */
  readonly isShared: boolean
  /** Maximum size of one file in bytes. Larger files are not stored. */
  readonly fileBytes: number
  /**
   * Stores the bytes and returns their hash, or undefined if they are too large. When the promise resolves, the bytes
   * are on disk. Rejects if they cannot be stored.
   */
  put(bytes: Uint8Array): Promise<string | undefined>
  /**
   * Like {@link put}, but the promise may resolve before the bytes are on disk. They are stored together with the next
   * commit to the same store, or after a short time without commits. If storing them fails, {@link get} returns
   * undefined. Absent in stores that have no commits.
   */
  note?(bytes: Uint8Array): Promise<string | undefined>
  /** Returns the content with this hash, or undefined if it is missing or damaged. */
  get(hash: string): Promise<Uint8Array | undefined>
  /**
   * Removes contents that exceed the age limit, then the least recently used contents until the size limit is met.
   * Ignores files that another process removes.
   */
  sweep(now?: number): Promise<void>
}

/** Returns the SHA-256 of the bytes in hex. */
export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex")
}

/** Returns true if the text has the form of a hash, and may therefore be part of a path. */
export function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}

/** A stored file content. `usedAt` is the time of its last use in milliseconds since the epoch. */
export interface StoredContent {
  name: string
  size: number
  usedAt: number
}

/**
 * Returns the contents to remove: contents that are too old, and the least recently used contents beyond the size
 * limit.
 */
export function beyondLimits<C extends StoredContent>(
  contents: readonly C[],
  { totalBytes, days }: ContentLimits,
  now: number,
): C[] {
  let room = totalBytes
  return contents
    .toSorted((a, b) => b.usedAt - a.usedAt)
    .filter(({ size, usedAt }) => {
      room -= size
      return room < 0 || now - usedAt > days * dayMs
    })
}
