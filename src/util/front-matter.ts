import { parse, stringify } from "yaml"
import { isRecord } from "./json.ts"

/** A Markdown text with parsed front matter. */
export interface FrontMatter {
  /** The values between the `---` lines. */
  fields: Record<string, unknown>
  /** The text that follows, trimmed. */
  body: string
}

/**
 * Parses a text that starts with YAML between two `---` lines. Returns undefined for other texts. Throws for invalid YAML
 * and for YAML that is not a mapping.
 */
export function readFrontMatter(text: string): FrontMatter | undefined {
  const split = splitFrontMatter(text)
  if (!split) return undefined
  const fields: unknown = parse(split.yaml) ?? {}
  if (!isRecord(fields)) throw new TypeError("the front matter between the --- lines is not a mapping")
  return { fields, body: split.body }
}

/** Splits without parsing. Returns the YAML, its offset in the text, and the body, trimmed. */
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
