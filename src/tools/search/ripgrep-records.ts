import * as z from "zod"
import { cutText } from "../../files/line-splitter.ts"

/** A matching line. */
export interface RipgrepMatch {
  type: "match"
  path: string
  /** Line number, from 1. */
  line: number
  text: string
}

/** The record at the end of a file. It follows the matches in the file. */
export interface RipgrepEnd {
  type: "end"
  path: string
  /** Whether the file contains a NUL byte. */
  binary: boolean
  /** Whether the whole file was read. False if reading stopped in an oversized record. */
  whole: boolean
}

/** Maximum size of a record in bytes. Longer records, from huge lines or lines with very many matches, are cut. */
const maxRecordBytes = 256 * 1024

/**
 * Size of a record in bytes above which reading stops, once its text has been read. Each match adds about 60 bytes to
 * the record, so a line of 1 GB could produce output for minutes.
 */
const maxSkippedBytes = 64 * 1024 * 1024

/** Schema for records. It is created at the first search, because creating it takes longer than many searches. */
let recordSchema: ReturnType<typeof createRecordSchema> | undefined

function createRecordSchema() {
  /** Plain text, or base64 if the file or its name is not valid UTF-8. */
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
 * Parses the output of `rg --json`, one JSON object per line. Keeps the first `maxLength` characters of a matching
 * line. Uses a few hundred kilobytes of memory for records of any length. Throws `SyntaxError` or `ZodError` for
 * invalid records.
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

/** Collects one record. For a match above the size limit, keeps the beginning of its text and its line number. */
function createRecord() {
  const pieces: Buffer[] = []
  let bytes = 0
  let window = ""
  let line: string | undefined

  /**
   * Finds the line number after the text. Quotes within the text are escaped, so a quote before a brace ends the text.
   */
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

/** Completes the JSON of a truncated match. */
function closed(head: string, line: string): string {
  const opening = /"lines":\{"(text|bytes)":"/.exec(head)
  if (!opening) return head
  // 20,000 characters or escapes are more than the tools show, and form a whole number of base64 groups.
  const start = opening.index + opening[0].length
  const text = /^(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u]){0,20000}/.exec(head.slice(start))?.[0] ?? ""
  return `${head.slice(0, start)}${text}"},"line_number":${line}}}`
}
