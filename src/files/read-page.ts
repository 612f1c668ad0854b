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

/** Maximum number of characters shown per line. */
const maxLineLength = 2000

/** Maximum size of a page in bytes, including line numbers. */
export const maxPageBytes = 51_200

/** Number of bytes that the line number, the arrow and the line feed add to a line. */
const numberingBytes = 9

/** A part of a text file. */
export interface TextPage {
  /** The requested lines that fit. Long lines are cut and marked. */
  lines: string[]
  /** Number of lines in the file. Undefined if the file is large and was not read to its end. */
  total?: number
  /** True if the file has more lines after the page. */
  more: boolean
  /** True if the page reached its size limit. */
  full: boolean
  /** Number of lines that were cut. */
  cut: number
  /** True if the page contains U+FFFD in place of invalid bytes. */
  invalid: boolean
  /** Stamp of the content that was read, for the file tracker. */
  stamp: FileStamp
}

/**
 * Skips `offset` lines and returns up to `limit` lines. Reads a file of up to `maxDigestBytes` to its end, to count its
 * lines and to compute its stamp. Reads a larger file only as far as needed. Throws the signal's reason if the signal
 * aborts, and the system error if the file cannot be read.
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

/** Creates a collector for the lines of a page. */
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
    /** True after the first line that did not fit on the page. */
    closed: () => full || seen > offset + limit,
    result: () => ({ lines, seen, full, cut }),
  }
}

/** Decodes a stream without its byte order mark, and checks whether all bytes are valid. */
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

/** A page of directory entries. */
export interface DirectoryPage {
  /** Names of the entries, sorted alphabetically. Directories and links to directories end with `/`. */
  entries: string[]
  total: number
}

/**
 * Returns up to `limit` entries starting at `offset`, within the page size limit. Throws the signal's reason if the
 * signal aborts, and the system error if the directory cannot be read.
 */
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

/** Returns true if the link leads to a directory. Returns false for a broken link. */
async function leadsToDirectory(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false
  }
}
