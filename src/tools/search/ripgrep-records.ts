import * as z from "zod"
import { cutText } from "../../files/line-splitter.ts"

/** A line that matches. */
export interface RipgrepMatch {
  type: "match"
  path: string
  /** From 1. */
  line: number
  text: string
}

/** The end of a file; the matches before it are its own. */
export interface RipgrepEnd {
  type: "end"
  path: string
  /** A NUL byte was met. */
  binary: boolean
  /** False where the file was given up: its last record, and with it the stream, took no end. */
  whole: boolean
}

/** 256 KB. A longer record, from a line of megabytes or one with very many matches, is cut. */
const maxRecordBytes = 256 * 1024

/**
 * 64 MB. A record that goes on beyond this after its text lists one match after the other, some sixty bytes for each:
 * minutes of output for a single line that is a gigabyte long.
 */
const maxSkippedBytes = 64 * 1024 * 1024

/** Made at the first search: it costs a start of the program more than many a search. */
let recordSchema: ReturnType<typeof createRecordSchema> | undefined

function createRecordSchema() {
  /** Text, or bytes in base64 where the file or its name is not UTF-8. */
  const text = z.union([
    z.object({ text: z.string() }).transform(({ text }) => text),
    z.object({ bytes: z.string() }).transform(({ bytes }) => Buffer.from(bytes, "base64").toString()),
  ])
  const match = z.object({
    type: z.literal("match"),
    data: z.object({ path: text, lines: text, line_number: z.number() }),
  })
  const end = z.object({
    type: z.literal("end"),
    data: z.object({ path: text, binary_offset: z.number().nullable() }),
  })
  const other = z.object({ type: z.enum(["begin", "context", "summary"]) })
  return z.discriminatedUnion("type", [match, end, other])
}

/**
 * The records of `rg --json`: one JSON object a line. Of a match's text the first `maxLength` characters are kept.
 * Memory stays at a few hundred kilobytes whatever the records' length. Throws `ZodError` for what ripgrep never says.
 */
export async function* readRecords(
  chunks: AsyncIterable<Buffer>,
  maxLength: number,
): AsyncGenerator<RipgrepMatch | RipgrepEnd> {
  let current = createRecord()
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      current.push(chunk.subarray(start, end))
      const record = interpret(current.json(), maxLength)
      if (record) yield record
      current = createRecord()
      start = end + 1
    }
    current.push(chunk.subarray(start))
    if (current.endless()) {
      const match = interpret(current.json(), maxLength)
      if (match) yield match
      if (match) yield { type: "end", path: match.path, binary: false, whole: false }
      return
    }
  }
}

function interpret(json: string, maxLength: number): RipgrepMatch | RipgrepEnd | undefined {
  recordSchema ??= createRecordSchema()
  const record = recordSchema.parse(JSON.parse(json))
  switch (record.type) {
    case "match": {
      const text = cutText(record.data.lines.replace(/\r?\n$/, ""), maxLength)
      return { type: "match", path: record.data.path, line: record.data.line_number, text }
    }
    case "end":
      return { type: "end", path: record.data.path, binary: record.data.binary_offset !== null, whole: true }
    default:
      return undefined
  }
}

/** Gathers one record. Of a match past the limit, the head of its text and its line number survive. */
function createRecord() {
  const pieces: Buffer[] = []
  let bytes = 0
  let window = ""
  let line: string | undefined

  /** Looks for the number behind the text. The quote before the brace is none of the text's: those are escaped. */
  function seek(piece: Buffer): void {
    if (line !== undefined) return
    window += piece.toString("latin1")
    line = /"\},"line_number":(\d+),/.exec(window)?.[1]
    window = window.slice(-64)
  }

  return {
    push(piece: Buffer): void {
      const before = bytes
      bytes += piece.length
      if (before < maxRecordBytes) pieces.push(piece.subarray(0, maxRecordBytes - before))
      if (bytes <= maxRecordBytes) return
      if (before <= maxRecordBytes) for (const kept of pieces) seek(kept)
      seek(piece.subarray(Math.max(0, maxRecordBytes - before)))
    },
    endless: () => line !== undefined && bytes > maxSkippedBytes,
    json(): string {
      const head = Buffer.concat(pieces).toString()
      return bytes <= maxRecordBytes ? head : closed(head, line ?? "0")
    },
  }
}

/** Makes JSON again of a match that was cut off in the middle. */
function closed(head: string, line: string): string {
  const opening = /"lines":\{"(text|bytes)":"/.exec(head)
  if (!opening) return head
  // 20,000 characters or escapes are far more than is shown of a line. A whole number of base64 groups decodes.
  const start = opening.index + opening[0].length
  const text = /^(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u]){0,20000}/.exec(head.slice(start))?.[0] ?? ""
  return `${head.slice(0, start)}${text}"},"line_number":${line}}}`
}
