import { join } from "node:path"
import { systemCode, TackleError } from "../../util/errors.ts"
import { readRegularFile } from "../../util/file-system.ts"

/** Maximum size of an index, in bytes. An index of this size has about half a million files. */
const maxBytes = 64 * 1024 * 1024

/** Size in bytes of the stat fields, the SHA-1 and the flags of an entry (gitformat-index, versions 2 to 4). */
const entryHead = 62
const extendedFlag = 0x4000
/** Offset of the mode in an entry, and the file type in the mode of a submodule. */
const modeOffset = 24
const submoduleType = 0b1110
/**
 * Mask for the bits of the flags that contain the length of the name. If a name is longer than these bits can
 * express, all of them are set.
 */
const nameLengths = 0xfff

/** The tracked paths of a repository, relative to its root, and whether it has submodules. */
export interface GitIndex {
  paths: string[]
  submodules: boolean
}

/**
 * Returns the tracked paths of a repository, relative to its root. Returns an empty list if the index does not exist,
 * and undefined if it cannot be read or parsed.
 */
export function trackedPaths(gitDirectory: string): string[] | undefined {
  return readIndex(gitDirectory)?.paths
}

/** Reads the index of a repository. Returns undefined if it cannot be read or parsed. */
export function readIndex(gitDirectory: string): GitIndex | undefined {
  try {
    const bytes = readRegularFile(join(gitDirectory, "index"), maxBytes)
    return bytes ? parseIndex(bytes) : { paths: [], submodules: false }
  } catch (error) {
    const expected = error instanceof RangeError || error instanceof TackleError
    if (expected || systemCode(error) !== undefined) return undefined
    throw error
  }
}

/** Parses an index. Returns undefined for an unsupported format. Throws `RangeError` if the bytes end too early. */
function parseIndex(bytes: Buffer): GitIndex | undefined {
  const version = bytes.readUInt32BE(4)
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return undefined
  const paths: string[] = []
  let submodules = false
  let name: Buffer = Buffer.alloc(0)
  // Version 4 abbreviates names, so a small index can contain very long names.
  let room = maxBytes
  let position = 12
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const start = position
    submodules ||= bytes.readUInt32BE(start + modeOffset) >>> 12 === submoduleType
    position += entryHead
    const flags = bytes.readUInt16BE(position - 2)
    if (flags & extendedFlag) position += 2
    let kept = 0
    if (version === 4) {
      const strip = readOffset(bytes, position)
      kept = name.length - strip.value
      position = strip.next
    }
    const end = bytes.indexOf(0, position)
    if (end === -1 || kept < 0 || kept + end - position > room) return undefined
    name = Buffer.concat([name.subarray(0, kept), bytes.subarray(position, end)])
    room -= name.length
    // The check fails for a repository with a different hash length.
    if (name.length === 0 || Math.min(name.length, nameLengths) !== (flags & nameLengths)) return undefined
    paths.push(name.toString("utf8"))
    position = version === 4 ? end + 1 : start + Math.ceil((end + 1 - start) / 8) * 8
  }
  // A split index stores most of its entries in another file, so it is not supported.
  return bytes.toString("latin1", position, position + 4) === "link" ? undefined : { paths, submodules }
}

/** Reads a number with seven bits per byte. As in pack files, each additional byte adds one to the value so far. */
function readOffset(bytes: Buffer, from: number): { value: number; next: number } {
  let next = from
  let byte = bytes.readUInt8(next++)
  let value = byte & 127
  while (byte & 128) {
    byte = bytes.readUInt8(next++)
    value = (value + 1) * 128 + (byte & 127)
  }
  return { value, next }
}
