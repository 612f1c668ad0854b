import { createHash } from "node:crypto"
import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { throwIfAborted } from "../util/abort.ts"
import { systemCode } from "../util/errors.ts"
import type { TextEncoding } from "./file-kind.ts"
import { type FileStamp, maxDigestBytes } from "./file-tracker.ts"
import { createLineSplitter } from "./line-splitter.ts"
import { type OpenFile, readChunks } from "./open-file.ts"
import { showName } from "./show-name.ts"

/** Characters of a line that are shown. */
export const maxLineLength = 2000

/** Bytes of output a page may take, numbers included. */
export const maxPageBytes = 51_200

/** What the number, the arrow and the line feed add to a line's bytes. */
const numberingBytes = 9

/** A part of a text file. */
export interface TextPage {
  /** As many lines from the offset as were asked for and fit, long ones cut with a mark. */
  lines: string[]
  /** The number of lines in the file; undefined where it was too large to count them. */
  total?: number
  /** Lines follow that are not in the page. */
  more: boolean
  /** The page ends because of its bytes and not of the limit. */
  full: boolean
  /** Lines that were cut. */
  cut: number
  /** The page holds U+FFFD in place of bytes that are no text in the file's encoding. */
  invalid: boolean
  /** The bytes that were read, for the ledger. */
  stamp: FileStamp
}

/**
 * Reads one page in a single pass with a few hundred kilobytes of memory, whatever the size of file and lines. A file
 * up to `maxDigestBytes` is read to its end, to count its lines and to stamp the very bytes that were shown; a larger
 * one only as far as the page needs. Throws `AbortedError`, and what the system throws.
 */
export async function readTextPage(
  handle: OpenFile,
  options: { encoding: TextEncoding; offset: number; limit: number; signal: AbortSignal },
): Promise<TextPage> {
  const { size, mtimeMs } = handle.stat()
  const small = size <= maxDigestBytes
  const page = createPage(options.offset, options.limit)
  const splitter = createLineSplitter(maxLineLength, page.add)
  const decoder = createDecoder(options.encoding)
  const hash = createHash("sha256")
  let bytes = 0
  let ended = true

  for await (const chunk of readChunks(handle, options.signal)) {
    bytes += chunk.length
    if (small) hash.update(chunk)
    splitter.push(decoder.decode(chunk))
    if (!small && page.closed()) {
      ended = false
      break
    }
  }
  if (ended) {
    splitter.push(decoder.finish())
    splitter.end()
  }

  const { lines, seen, full, cut } = page.result()
  const result: TextPage = {
    lines,
    more: !ended || options.offset + lines.length < seen,
    full,
    cut,
    invalid: decoder.invalid() && lines.some((line) => line.includes("\ufffd")),
    stamp: small ? { size: bytes, mtimeMs, digest: hash.digest("hex") } : { size, mtimeMs },
  }
  if (ended) result.total = seen
  return result
}

/** Picks the lines of the page out of all that pass. */
function createPage(offset: number, limit: number) {
  const lines: string[] = []
  let seen = 0
  let bytes = 0
  let cut = 0
  let full = false

  return {
    add(line: string, length: number): void {
      const index = seen
      seen += 1
      if (index < offset || full || lines.length >= limit) return
      const short = line.length < length
      const shown = short ? `${line}… [line cut: ${line.length} of ${length} characters shown]` : line
      bytes += Buffer.byteLength(shown) + numberingBytes
      if (bytes > maxPageBytes) {
        full = true
        return
      }
      lines.push(shown)
      if (short) cut += 1
    },
    /** True once a line came that the page did not take for want of room. */
    closed: () => full || seen > offset + limit,
    result: () => ({ lines, seen, full, cut }),
  }
}

/** Decodes a stream and notes whether every byte was valid. The byte order mark is dropped. */
function createDecoder(encoding: TextEncoding) {
  const lenient = new TextDecoder(encoding)
  let strict: InstanceType<typeof TextDecoder> | undefined = new TextDecoder(encoding, { fatal: true })

  function check(chunk: Uint8Array | undefined): void {
    try {
      if (chunk) strict?.decode(chunk, { stream: true })
      else strict?.decode()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      strict = undefined
    }
  }

  return {
    decode(chunk: Uint8Array): string {
      check(chunk)
      return lenient.decode(chunk, { stream: true })
    },
    finish(): string {
      check(undefined)
      return lenient.decode()
    },
    invalid: () => strict === undefined,
  }
}

/** A part of a directory's entries. */
export interface DirectoryPage {
  /** Sorted by name; directories, and links to such, end with `/`. */
  entries: string[]
  total: number
}

/** The entries from `offset` on, as many as are asked for and fit in a page's bytes. Throws what the system throws. */
export async function readDirectoryPage(
  path: string,
  options: { offset: number; limit: number; signal: AbortSignal },
): Promise<DirectoryPage> {
  const found = await readdir(path, { withFileTypes: true })
  found.sort((a, b) => (a.name < b.name ? -1 : 1))

  const entries: string[] = []
  let bytes = 0
  for (const entry of found.slice(options.offset, options.offset + options.limit)) {
    throwIfAborted(options.signal)
    const directory =
      entry.isDirectory() || (entry.isSymbolicLink() && (await leadsToDirectory(join(path, entry.name))))
    const shown = showName(directory ? `${entry.name}/` : entry.name)
    bytes += Buffer.byteLength(shown) + 1
    if (bytes > maxPageBytes) break
    entries.push(shown)
  }
  return { entries, total: found.length }
}

/** False for a link that leads nowhere. */
async function leadsToDirectory(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false
  }
}
