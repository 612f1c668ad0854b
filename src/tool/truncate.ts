import { cutHead, cutTail, lineCount, type Room } from "./cut.ts"
import { createFullText, type FullText } from "./full-text.ts"
import type { SpillOpener } from "./spill.ts"
import type { OutputLimits } from "./tool.ts"

/** 2,000 lines or 50 KB of the beginning: what a model reads of a tool that says nothing else. */
export const defaultLimits: OutputLimits = { maxLines: 2_000, maxBytes: 51_200, keep: "head" }

/** What became of an output. Sizes in bytes of UTF-8; they and the path are there only if it was cut. */
export interface Truncation {
  truncated: boolean
  /** The full text. Absent where the disk refused it. */
  outputPath?: string
  originalSize?: number
  truncatedSize?: number
}

/**
 * Bounds an output for the model. What fits is given back as it is. Else the full text goes to a spill file and whole
 * lines of it stay, below a notice that says how much there was and where it is. Notice and lines together keep the
 * limits, unless these leave the notice less than half the room. A disk that refuses is told in the notice.
 */
export function truncateOutput(
  text: string,
  options: { limits: OutputLimits; spill: SpillOpener; canDelegate?: boolean },
): { output: string; metadata: Truncation } {
  const { limits, canDelegate = false } = options
  const size = { lines: lineCount(text), bytes: Buffer.byteLength(text) }
  if (fits(size, limits)) return { output: text, metadata: { truncated: false } }

  const full = createFullText(options.spill)
  full.write(text)
  full.close()
  const output = renderCut({ head: text, size, limits, full, canDelegate })
  return { output, metadata: describeCut(output, size, full) }
}

/** True if an output of this size is given whole. */
export function fits(size: Room, limits: OutputLimits): boolean {
  return size.lines <= limits.maxLines && size.bytes <= limits.maxBytes
}

/** The metadata of an output that was cut. */
export function describeCut(output: string, size: Room, full: FullText): Truncation {
  const metadata: Truncation = {
    truncated: true,
    originalSize: size.bytes,
    truncatedSize: Buffer.byteLength(output),
  }
  if (full.path !== undefined) metadata.outputPath = full.path
  return metadata
}

/** An output that is too long, or what is at hand of it. */
export interface CutSource {
  /** The beginning, or all of it. */
  head: string
  /** The end, where `head` is not all of it. */
  tail?: string
  /** Of the whole. */
  size: Room
  limits: OutputLimits
  full: FullText
  canDelegate?: boolean
}

/** Bytes of the mark that stands for what was left out, with its newlines. */
const markBytes = 100

/** The notice first, where a later cut that keeps the beginning cannot lose it, then the lines that stay. */
export function renderCut(source: CutSource): string {
  const { limits, size } = source
  const notice = `${noticeOf(source)}\n\n`
  const room: Room = {
    lines: Math.max(limits.maxLines - lineCount(notice) - 1, Math.floor(limits.maxLines / 2)),
    bytes: Math.max(limits.maxBytes - Buffer.byteLength(notice) - markBytes, Math.floor(limits.maxBytes / 2)),
  }
  if (limits.keep === "head") return notice + cutHead(source.head, room)

  const half: Room = { lines: Math.ceil(room.lines / 2), bytes: Math.ceil(room.bytes / 2) }
  const head = cutHead(source.head, half)
  const rest: Room = { lines: room.lines - half.lines, bytes: room.bytes - half.bytes }
  const tail = cutTail(source.tail ?? source.head.slice(head.length), rest)
  const lines = Math.max(0, size.lines - lineCount(head) - lineCount(tail))
  const left = lines > 0 ? `${lines} lines` : "the middle of a long line"
  return `${notice}${head}${head === "" || head.endsWith("\n") ? "" : "\n"}[… ${left} omitted …]\n${tail}`
}

function noticeOf({ size, limits, full, canDelegate }: CutSource): string {
  const shown = limits.keep === "head" ? "the beginning follows" : "the beginning and end follow"
  return `[Output truncated: ${size.lines} lines, ${size.bytes} bytes; ${shown}. ${whereabouts(full, canDelegate)}]`
}

function whereabouts(full: FullText, canDelegate = false): string {
  const delegate = canDelegate ? ", or give it to a subagent with task" : ""
  const use = `Use read with offset and limit, or grep${delegate}.`
  if (full.path === undefined) {
    return `The full text could not be saved (${full.problem}). Request less at a time to see the rest.`
  }
  if (full.problem !== undefined) {
    return `Only the first ${full.bytes} bytes could be saved (${full.problem}): ${full.path}. ${use}`
  }
  return `${full.capped ? "The part up to the file size limit" : "Full text"}: ${full.path}. ${use}`
}
