import { parse } from "yaml"
import { isRecord } from "./json.ts"

/** A Markdown text with its front matter read. */
export interface FrontMatter {
  /** The values between the lines of `---`. */
  fields: Record<string, unknown>
  /** What follows, trimmed. */
  body: string
}

/** Takes apart a text that begins with YAML between two lines of `---`. Undefined where it does not. Throws for bad YAML. */
export function readFrontMatter(given: string): FrontMatter | undefined {
  const text = given.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n")
  const [head] = /^---[ \t]*\n/.exec(text) ?? []
  if (head === undefined) return undefined
  const rest = text.slice(head.length)
  const end = /^---[ \t]*$/m.exec(rest)
  if (!end) return undefined
  const fields: unknown = parse(rest.slice(0, end.index)) ?? {}
  if (!isRecord(fields)) throw new TypeError("what stands between the lines of --- is no list of fields")
  return { fields, body: rest.slice(end.index + end[0].length).trim() }
}
