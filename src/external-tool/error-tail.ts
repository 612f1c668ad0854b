import { terminalText } from "../util/terminal-text.ts"

/** The end of what a program wrote to standard error, for people and errors. */
export interface ErrorTail {
  push(bytes: Uint8Array): void
  /** As a terminal would show it. Empty where nothing was written. */
  text(): string
  /** For the end of a message: with a heading, or empty. */
  note(): string
}

/** Enough for a stack trace. In bytes. */
const keptBytes = 4 * 1024

/** Begins empty, and holds a few KB whatever comes. */
export function createErrorTail(): ErrorTail {
  let tail = Buffer.alloc(0)
  let cut = false
  const text = () => `${cut ? "…" : ""}${terminalText(tail.toString()).trimEnd()}`
  return {
    push(bytes) {
      const all = Buffer.concat([tail, bytes])
      cut ||= all.length > keptBytes
      tail = all.subarray(-keptBytes)
    },
    text,
    note: () => (text() === "" ? "" : `\nIts standard error ended with:\n${text()}`),
  }
}
