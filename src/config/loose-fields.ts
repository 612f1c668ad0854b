import type { Place } from "./errors.ts"
import type { ConfigEntry, ObjectNode } from "./node.ts"

/**
 * Reads `key: value` lines where the value is whatever follows the first colon, as other programs do with front matter
 * that is no YAML. Undefined where a line is anything else: what is nested cannot be read so.
 */
export function looseFields(text: string, place: (offset: number) => Place): ObjectNode | undefined {
  const entries: ConfigEntry[] = []
  let offset = 0
  for (const line of text.split("\n")) {
    const start = offset
    offset += line.length + 1
    if (/^\s*(?:#.*)?$/.test(line)) continue
    const [, key, value] = /^([\w-]+):[ \t]*(.*?)\s*$/.exec(line) ?? []
    if (key === undefined || value === undefined) return undefined
    const at = place(start)
    entries.push({ key, place: at, value: { kind: "scalar", place: at, value: readValue(value) } })
  }
  return { kind: "object", place: place(0), entries }
}

function readValue(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true"
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return Number(text)
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text
}
