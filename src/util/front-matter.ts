import { parse, stringify, YAMLParseError } from "yaml"
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
 * matter. Reads invalid YAML line by line, as {@link looseFields} does. Throws if that is not possible either, and for
 * YAML that is not a mapping.
 */
export function readFrontMatter(text: string): FrontMatter | undefined {
  const split = splitFrontMatter(text)
  if (!split) return undefined
  const fields = parseFields(split.yaml)
  if (!isRecord(fields)) throw new TypeError("the front matter between the --- lines is not a mapping")
  return { fields, body: split.body }
}

function parseFields(yaml: string): unknown {
  try {
    return parse(yaml) ?? {}
  } catch (error) {
    const loose = error instanceof YAMLParseError ? looseFields(yaml) : undefined
    if (!loose) throw error
    return Object.fromEntries(loose.map(({ key, value }) => [key, value]))
  }
}

/** A field of front matter, with the offset of its line. */
export interface LooseField {
  key: string
  value: string | number | boolean
  offset: number
}

/**
 * Parses lines of the form `key: value` in front matter that is not valid YAML, such as `description: Use it: like
 * this`, because other programs accept such lines. The value is the rest of the line and the indented lines that follow.
 * Skips blank lines and comments. Returns undefined if any other line has another form.
 */
export function looseFields(text: string): LooseField[] | undefined {
  const fields: { key: string; lines: string[]; offset: number }[] = []
  let offset = 0
  for (const line of text.split("\n")) {
    const start = offset
    offset += line.length + 1
    if (/^\s*(?:#.*)?$/.test(line)) continue
    const last = fields.at(-1)
    // An indented list is not text.
    if (last && /^[ \t]+(?!-(?:\s|$))\S/.test(line)) {
      last.lines.push(line.trim())
      continue
    }
    const [, key, value] = /^([\w-]+)[ \t]*:[ \t]*(.*?)\s*$/.exec(line) ?? []
    if (key === undefined || value === undefined) return undefined
    fields.push({ key, lines: /^[>|][+-]?$/.test(value) ? [] : [value], offset: start })
  }
  return fields.map(({ key, lines, offset }) => ({ key, value: looseValue(lines.join(" ").trim()), offset }))
}

function looseValue(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true"
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return Number(text)
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text
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
