import { counted } from "../util/words.ts"
import type { OutputLimits } from "./definition.ts"
import { createFullText, type FullText, type SpillOpener } from "./spill.ts"

/** Default output limits: the first 2,000 lines or 50 KB. */
export const defaultLimits: OutputLimits = { maxLines: 2_000, maxBytes: 51_200, keep: "head" }

/**
 * Describes whether and how an output was truncated. Sizes are in bytes of UTF-8. The path is absent if the output was
 * not truncated.
 */
export interface Truncation {
  truncated: boolean
  /** Path of the full text. Absent if it could not be written. */
  outputPath?: string
  /** Size of the whole output. */
  originalSize: number
  /** Size of the output that the model reads. */
  truncatedSize: number
}

/** Size of text, in lines and bytes of UTF-8. */
export interface TextSize {
  lines: number
  bytes: number
}

/**
 * Limits an output for the model. Returns an output within the limits unchanged. Otherwise writes the full text to a
 * spill file and returns a notice with size and path, followed by whole lines of the text. The result stays within the
 * limits, unless the limits are so low that the notice alone would exceed half of a limit. If the file cannot be
 * written, the notice says so.
 */
export function truncateOutput(
  text: string,
  options: { limits: OutputLimits; spill: SpillOpener; canDelegate?: boolean },
): { output: string; metadata: Truncation } {
  const { limits, canDelegate } = options
  const size = { lines: lineCount(text), bytes: Buffer.byteLength(text) }
  if (fits(size, limits))
    return { output: text, metadata: { truncated: false, ...sizesOf(text, size.bytes) } }

  const full = createFullText(options.spill)
  full.write(text)
  full.close()
  const output = renderCut({ head: text, size, limits, full, canDelegate })
  return { output, metadata: describeCut(output, size, full) }
}

/** Returns true if an output of this size is within the limits. */
export function fits(size: TextSize, limits: OutputLimits): boolean {
  return size.lines <= limits.maxLines && size.bytes <= limits.maxBytes
}

/** Returns the number of lines. A final newline does not start another line. */
export function lineCount(text: string): number {
  let count = text.length > 0 && !text.endsWith("\n") ? 1 : 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1
  return count
}

/** Returns the metadata that describes a truncated output. */
export function describeCut(output: string, size: TextSize, full: FullText): Truncation {
  const metadata: Truncation = { truncated: true, ...sizesOf(output, size.bytes) }
  if (full.path !== undefined) metadata.outputPath = full.path
  return metadata
}

/** Returns the sizes of an output and of the part that the model reads. */
export function sizesOf(
  output: string,
  originalSize: number,
): Pick<Truncation, "originalSize" | "truncatedSize"> {
  return { originalSize, truncatedSize: Buffer.byteLength(output) }
}

/** An output that exceeds the limits. If the output is long, only its beginning and end are in memory. */
export interface CutSource {
  /** The beginning of the text, or the whole text. */
  head: string
  /** The end of the text, if `head` is not the whole text. */
  tail?: string
  /** Size of the whole text. */
  size: TextSize
  limits: OutputLimits
  full: FullText
  canDelegate?: boolean
}

/** Bytes reserved for the mark between the beginning and the end, including its newlines. */
const markBytes = 100

/** Returns the notice and the lines to keep. The notice comes first, so that later truncation does not remove it. */
export function renderCut(source: CutSource): string {
  const { limits, size } = source
  // The notice with the largest numbers is at least as long as the final notice.
  const longest = noticeOf(source, { head: size.lines, tail: size.lines })
  const room: TextSize = {
    lines: Math.max(limits.maxLines - lineCount(longest) - 1, Math.floor(limits.maxLines / 2)),
    bytes: Math.max(
      limits.maxBytes - Buffer.byteLength(longest) - markBytes,
      Math.floor(limits.maxBytes / 2),
    ),
  }
  if (limits.keep === "head") {
    const head = cutHead(source.head, room)
    return noticeOf(source, { head: wholeLines(head), tail: 0 }) + head
  }

  const half: TextSize = { lines: Math.ceil(room.lines / 2), bytes: Math.ceil(room.bytes / 2) }
  const head = cutHead(source.head, half)
  const rest: TextSize = { lines: room.lines - half.lines, bytes: room.bytes - half.bytes }
  const tail = cutTail(source.tail ?? source.head.slice(head.length), rest)
  const lines = Math.max(0, size.lines - lineCount(head) - lineCount(tail))
  const omitted = lines > 0 ? counted(lines, "line") : "the middle of a long line"
  const notice = noticeOf(source, { head: wholeLines(head), tail: lineCount(tail) })
  return `${notice}${head}${head === "" || head.endsWith("\n") ? "" : "\n"}[… ${omitted} omitted …]\n${tail}`
}

/** Returns the number of lines that end with a newline. A longer line may have been cut. */
function wholeLines(head: string): number {
  return head.endsWith("\n") ? lineCount(head) : Math.max(0, lineCount(head) - 1)
}

/** Number of lines that follow the notice. */
interface ShownLines {
  /** Number of whole lines at the beginning, which is also the offset of the first line that is missing. */
  head: number
  tail: number
}

function noticeOf({ size, limits, full, canDelegate }: CutSource, { head, tail }: ShownLines): string {
  const first = head === 0 ? "the beginning of the first line" : `the first ${counted(head, "line")}`
  const shown = limits.keep === "head" ? first : `${first} and the last ${counted(tail, "line")}`
  const verb = limits.keep === "head" && head <= 1 ? "follows" : "follow"
  return `[Output truncated: ${counted(size.lines, "line")}, ${size.bytes} bytes; ${shown} ${verb}. ${locationOf(full, head, canDelegate)}]\n\n`
}

function locationOf(full: FullText, offset: number, canDelegate = false): string {
  const delegate = canDelegate ? ", or have a subagent read it with task" : ""
  const use = `To continue, use read with offset ${offset}, or grep${delegate}.`
  if (full.path === undefined) {
    return `The full text could not be saved (${full.problem}). To see the rest, make several calls that each return less output.`
  }
  if (full.problem !== undefined) {
    return `Only the first ${full.bytes} bytes could be saved to ${full.path} (${full.problem}). ${use}`
  }
  return `${full.capped ? "The part up to the file size limit" : "Full text"}: ${full.path}. ${use}`
}

/** Returns the first whole lines that fit. If the first line alone is too long, returns its beginning. */
function cutHead(text: string, room: TextSize): string {
  let end = 0
  let bytes = 0
  for (let lines = 0; lines < room.lines && end < text.length; lines += 1) {
    const newline = text.indexOf("\n", end)
    const next = newline === -1 ? text.length : newline + 1
    // Every character takes at least one byte, so a longer slice cannot fit.
    const size = next - end > room.bytes ? Number.POSITIVE_INFINITY : Buffer.byteLength(text.slice(end, next))
    if (bytes + size > room.bytes) break
    bytes += size
    end = next
  }
  return end > 0 || room.lines < 1 ? text.slice(0, end) : firstBytes(text, room.bytes)
}

/** Returns the last whole lines that fit. If the last line alone is too long, returns its end. */
function cutTail(text: string, room: TextSize): string {
  let start = text.length
  let bytes = 0
  for (let lines = 0; lines < room.lines && start > 0; lines += 1) {
    // The newline before `start` ends this line.
    const previous = start < 2 ? 0 : text.lastIndexOf("\n", start - 2) + 1
    const size =
      start - previous > room.bytes
        ? Number.POSITIVE_INFINITY
        : Buffer.byteLength(text.slice(previous, start))
    if (bytes + size > room.bytes) break
    bytes += size
    start = previous
  }
  return start < text.length || room.lines < 1 ? text.slice(start) : lastBytes(text, room.bytes)
}

function firstBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text.slice(0, bytes))
  return encoded.toString("utf8", 0, characterBorder(encoded, Math.min(bytes, encoded.length), -1))
}

function lastBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text.slice(Math.max(0, text.length - bytes)))
  return encoded.toString("utf8", characterBorder(encoded, Math.max(0, encoded.length - bytes), 1))
}

/** Returns the nearest index from `at`, in the direction of `step`, that does not split a UTF-8 character. */
function characterBorder(encoded: Uint8Array, at: number, step: 1 | -1): number {
  let border = at
  while (border > 0 && border < encoded.length && ((encoded[border] ?? 0) & 0xc0) === 0x80) border += step
  return border
}
