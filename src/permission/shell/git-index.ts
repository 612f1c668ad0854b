import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { systemCode } from "../../util/errors.ts"

/** Maximum size of an index, in bytes: about half a million files. */
const maxBytes = 64 * 1024 * 1024

/** Stat fields, a SHA-1 and the flags of an entry, in bytes (gitformat-index, versions 2 to 4). */
const entryHead = 62
const extendedFlag = 0x4000
/** Offset of the mode in an entry, and its type for a commit of another repository. */
const modeOffset = 24
const submoduleType = 0b1110
/** The bits of the flags that contain the length of the name. All of them are set for this length or more. */
const nameLengths = 0xfff

/** The tracked paths of a repository, relative to its root, and whether it has submodules. */
export interface GitIndex {
  paths: string[]
  submodules: boolean
}

/**
 * Returns the tracked paths of a repository, relative to its root. Empty if nothing was ever added. Undefined if the
 * index cannot be read or parsed.
 */
export async function trackedPaths(gitDirectory: string): Promise<string[] | undefined> {
  return (await readIndex(gitDirectory))?.paths
}

/** Reads the index of a repository. Undefined if it cannot be read or parsed. */
export async function readIndex(gitDirectory: string): Promise<GitIndex | undefined> {
  const file = join(gitDirectory, "index")
  try {
    if ((await stat(file)).size > maxBytes) return undefined
    return parseIndex(await readFile(file))
  } catch (error) {
    if (systemCode(error) === "ENOENT") return { paths: [], submodules: false }
    if (error instanceof RangeError || systemCode(error) !== undefined) return undefined
    throw error
  }
}

/** Throws `RangeError` if the bytes end too early. */
function parseIndex(bytes: Buffer): GitIndex | undefined {
  const version = bytes.readUInt32BE(4)
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return undefined
  const paths: string[] = []
  let submodules = false
  let name: Buffer = Buffer.alloc(0)
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
    if (end === -1 || kept < 0) return undefined
    name = Buffer.concat([name.subarray(0, kept), bytes.subarray(position, end)])
    // Fails for a repository with another hash length.
    if (name.length === 0 || Math.min(name.length, nameLengths) !== (flags & nameLengths)) return undefined
    paths.push(name.toString("utf8"))
    position = version === 4 ? end + 1 : start + Math.ceil((end + 1 - start) / 8) * 8
  }
  // A split index stores most of its entries in another file.
  return bytes.toString("latin1", position, position + 4) === "link" ? undefined : { paths, submodules }
}

/** Reads a number of seven bits per byte, as in pack files: each further byte adds one. */
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
