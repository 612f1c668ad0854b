import { isRecord, parseJson } from "../util/json.ts"

const maxLength = 300

/**
 * What a server said of an error, in one line of 300 characters at most: of an error object its text, of an HTML page its
 * title. `otherwise` where the body is empty.
 */
export function serverWords(body: string, otherwise: string): string {
  const text = body.trim()
  if (text === "") return otherwise
  if (text.startsWith("<")) {
    const title = /<(title|h1)[^>]*>([^<]+)</i.exec(text)?.[2]
    return shorten(title ?? text.replaceAll(/<[^>]*>/g, " "))
  }
  const json = parseJson(text)
  return shorten((json.ok ? wordsOf(json.value) : undefined) ?? text)
}

/** The text in the shapes that servers give their error objects. */
function wordsOf(value: unknown): string | undefined {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return wordsOf(value[0])
  if (!isRecord(value)) return undefined
  return wordsOf(value.error) ?? wordsOf(value.message) ?? wordsOf(value.detail) ?? wordsOf(value.msg)
}

/** In one line, of so many characters at most. */
export function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}
