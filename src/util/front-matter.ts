import { parse, stringify } from "yaml"
import { isRecord } from "./json.ts"

/** A Markdown document with parsed front matter. */
export interface FrontMatter {
  /** Values between the `---` lines. */
  fields: Record<string, unknown>
  /** Text after the front matter, trimmed. */
  body: string
}

/**
 * Parses a document that starts with YAML between two `---` lines. Returns undefined for a document without front
 * matter. Throws for invalid YAML and for YAML that is not a mapping.
 */
export function readFrontMatter(text: string): FrontMatter | undefined {
  const split = splitFrontMatter(text)
  if (!split) return undefined
  const fields: unknown = parse(split.yaml) ?? {}
  if (!isRecord(fields)) throw new TypeError("the front matter between the --- lines is not a mapping")
  return { fields, body: split.body }
}

/**
 * Splits a document into front matter and body without parsing the YAML. Returns the YAML, its offset in the document,
 * and the trimmed body, or undefined for a document without front matter.
 */
export function splitFrontMatter(text: string): { yaml: string; start: number; body: string } | undefined {
  const [head] = /^\uFEFF?---[ \t]*\r?\n/.exec(text) ?? []
  if (head === undefined) return undefined
  const rest = text.slice(head.length)
  const end = /^---[ \t]*\r?$/m.exec(rest)
  if (!end) return undefined
  const body = rest
    .slice(end.index + end[0].length)
    .replaceAll("\r\n", "\n")
    .trim()
  return { yaml: rest.slice(0, end.index), start: head.length, body }
}

/** Returns Markdown with the fields as front matter. Omits undefined fields. */
export function writeFrontMatter(fields: Readonly<Record<string, unknown>>, body: string): string {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const text = body.trim()
  return `---\n${stringify(given, { lineWidth: 0 })}---\n${text === "" ? "" : `\n${text}\n`}`
}
