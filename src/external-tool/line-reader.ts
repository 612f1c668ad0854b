/** Splits a stream of bytes into lines. */
export interface LineReader {
  /** Reads bytes. Returns false if the reader has stopped. It then ignores further bytes. */
  push(bytes: Uint8Array): boolean
  /** Marks the end of the output. Any text after the last line break becomes the last line. */
  end(): void
}

/**
 * Limits for the standard output of one call, in bytes. They are high enough for several images as data URLs. Line
 * breaks count toward the total but not toward the length of a line.
 */
export const defaultLineLimits = { lineBytes: 16 * 1024 * 1024, totalBytes: 64 * 1024 * 1024 }

/**
 * Creates a reader. Lines are numbered from 1. Blank lines are numbered but not passed to `onLine`. A line that is too
 * long or not UTF-8, or output that exceeds the total limit, is reported once and stops the reader. `onLine` stops the
 * reader by returning false.
 */
export function createLineReader(options: {
  lineBytes: number
  totalBytes: number
  onLine(text: string, number: number): boolean
  onProblem(problem: string, number: number): void
}): LineReader {
  const { lineBytes, totalBytes, onLine, onProblem } = options
  let parts: Uint8Array[] = []
  let held = 0
  let total = 0
  let number = 1
  let stopped = false

  function fail(problem: string): void {
    stopped = true
    parts = []
    onProblem(problem, number)
  }

  function keep(bytes: Uint8Array): void {
    held += bytes.length
    // Copy the bytes, because the caller reuses the buffer.
    if (held <= lineBytes) parts.push(Buffer.from(bytes))
    else fail(`it is longer than ${lineBytes} bytes`)
  }

  function finishLine(): void {
    const text = decode(Buffer.concat(parts))
    parts = []
    held = 0
    if (text === undefined) fail("it is not UTF-8")
    else if (text.trim() !== "" && !onLine(text, number)) stopped = true
    number += 1
  }

  return {
    push(bytes) {
      total += bytes.length
      if (!stopped && total > totalBytes) fail(`the output is longer than ${totalBytes} bytes`)
      let start = 0
      while (!stopped && start < bytes.length) {
        const end = bytes.indexOf(lineEnd, start)
        keep(bytes.subarray(start, end === -1 ? bytes.length : end))
        if (end === -1) break
        if (!stopped) finishLine()
        start = end + 1
      }
      return !stopped
    },
    end() {
      if (!stopped && held > 0) finishLine()
      stopped = true
    },
  }
}

const lineEnd = 0x0a

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
