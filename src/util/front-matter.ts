import { parse, stringify } from "yaml"
import { isRecord } from "./json.ts"

/** A Markdown text with its front matter read. */
export interface FrontMatter {
  /** The values between the lines of `---`. */
  fields: Record<string, unknown>
  /** What follows, trimmed. */
  body: string
}

/**
 * Takes apart a text that begins with YAML between two lines of `---`. Undefined where it does not. Throws for YAML
 * that is bad, or that is no list of fields.
 */
export function readFrontMatter(text: string): FrontMatter | undefined {
  const split = splitFrontMatter(text)
  if (!split) return undefined
  const fields: unknown = parse(split.yaml) ?? {}
  if (!isRecord(fields)) throw new TypeError("what stands between the lines of --- is no list of fields")
  return { fields, body: split.body }
}

/** The same before the YAML is read: its text, the offset in the given text where that begins, and what follows, trimmed. */
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

/** A Markdown text with the fields as front matter; those without a value are left out. */
export function writeFrontMatter(fields: Readonly<Record<string, unknown>>, body: string): string {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const text = body.trim()
  return `---\n${stringify(given, { lineWidth: 0 })}---\n${text === "" ? "" : `\n${text}\n`}`
}
