import { countNewlines } from "./count-lines.ts"
import { lineCount } from "./cut.ts"
import { createFullText } from "./full-text.ts"
import type { SpillOpener } from "./spill.ts"
import { terminalText } from "./terminal-text.ts"
import type { OutputLimits } from "./tool.ts"
import { describeCut, fits, renderCut, type Truncation } from "./truncate.ts"

/** An output as it stands, for the model. */
export interface OutputView extends Truncation {
  /** Without control sequences. Where it was too long: both ends, below a notice. Empty if nothing was written. */
  text: string
}

/** Takes an output of any length as it comes. Holds less than a megabyte of it, unless the limit is above a third of one. */
export interface OutputBuffer {
  /** Bytes so far. */
  readonly bytes: number
  /** Takes the bytes over: the caller may write over them afterwards. Never throws, see {@link FullText}. */
  push(bytes: Uint8Array): void
  /** What was written so far, within the limits. The spill file is then complete up to here. May be called again. */
  view(limits?: OutputLimits): OutputView
  /** The last characters without control sequences, for showing progress. */
  tail(maxCharacters: number): string
  /** No more comes: the spill file is closed. What was kept can still be looked at. */
  close(): void
}

/** As much is taken at once to disk, and kept of the beginning. Larger blocks were no faster (64 KB to 1 MB tried). */
const minBlockBytes = 256 * 1024

/**
 * Keeps the first block and the last two. The first that is full goes to disk, so that the file begins with the
 * beginning; so does each later one. A short output that passes the limits all the same goes there when it is viewed.
 */
export function createOutputBuffer(options: { limits: OutputLimits; spill: SpillOpener }): OutputBuffer {
  const blockBytes = Math.max(minBlockBytes, options.limits.maxBytes)
  const full = createFullText(options.spill)
  let head: Buffer | undefined
  let previous: Buffer | undefined
  let block: Buffer = Buffer.allocUnsafeSlow(blockBytes)
  let filled = 0
  /** How much of `block` is on disk already. */
  let spilled = 0
  let bytes = 0
  let newlines = 0
  let last = 0
  let closed = false

  function spill(): void {
    full.write(block.subarray(spilled, filled))
    spilled = filled
  }

  function turnBlock(): void {
    spill()
    newlines += countNewlines(block)
    const free = previous
    if (head) previous = block
    else head = block
    block = free ?? Buffer.allocUnsafeSlow(blockBytes)
    filled = 0
    spilled = 0
  }

  /** What is at hand, from the beginning on; with a hole before the last two where more was written than is kept. */
  function kept(): Buffer[] {
    return [head, previous, block.subarray(0, filled)].filter((part) => part !== undefined)
  }

  function size() {
    const lines = newlines + countNewlines(block.subarray(0, filled)) + (bytes > 0 && last !== 0x0a ? 1 : 0)
    return { lines, bytes }
  }

  function view(limits: OutputLimits): OutputView {
    const source = sourceOf(kept(), bytes)
    const shown = { lines: lineCount(source.head), bytes: Buffer.byteLength(source.head) }
    if (source.tail === undefined && fits(shown, limits)) return { text: source.head, truncated: false }
    spill()
    if (closed) full.close()
    else full.settle()
    const text = renderCut({ ...source, size: size(), limits, full })
    return { text, ...describeCut(text, size(), full) }
  }

  return {
    get bytes() {
      return bytes
    },
    push(chunk) {
      for (let taken = 0; taken < chunk.length; ) {
        const part = Math.min(chunk.length - taken, blockBytes - filled)
        block.set(part === chunk.length ? chunk : chunk.subarray(taken, taken + part), filled)
        filled += part
        taken += part
        if (filled === blockBytes) turnBlock()
      }
      bytes += chunk.length
      last = chunk.at(-1) ?? last
    },
    view: (limits = options.limits) => view(limits),
    tail(maxCharacters) {
      // No character has more than four bytes.
      const end = Buffer.concat(kept().slice(-2)).subarray(-4 * maxCharacters)
      return terminalText(end.toString()).slice(-maxCharacters).toWellFormed()
    },
    close() {
      closed = true
      if (head || spilled > 0) spill()
      full.close()
    },
  }
}

/** As text, without the lines that the hole in the middle has torn. */
function sourceOf(kept: readonly Buffer[], bytes: number): { head: string; tail?: string } {
  const whole = Buffer.concat(kept)
  if (whole.length === bytes) return { head: terminalText(whole.toString()) }
  const [beginning = whole, ...end] = kept
  const head = terminalText(beginning.toString())
  const tail = terminalText(Buffer.concat(end).toString())
  return {
    head: head.slice(0, head.lastIndexOf("\n") + 1) || head,
    tail: tail.slice(tail.indexOf("\n") + 1) || tail,
  }
}
