import { isRecord, isTooDeep, maxDepth, parseJson } from "./json.ts"
import { nearNames, plainName } from "./similarity.ts"

/**
 * Returns the offered name that the model most likely meant. Prefers a name that differs only in case, `-`, `_`, spaces
 * or a prefix such as `functions.`. If there is no such name, allows one edit in names of four or five characters, and
 * two in longer names. Returns undefined if no name or several names match.
 */
export function repairName(name: string, offered: readonly string[]): string | undefined {
  if (offered.includes(name)) return name
  // Remains of the harmony format (`read<|channel|>commentary`) and the number that Kimi adds (`functions.read:0`).
  const clean = name.replace(/<\|[\s\S]*$/, "").replace(/:\d+$/, "")
  for (const form of [name, clean, clean.split(/[.:/]/).at(-1) ?? ""]) {
    const same = offered.filter((candidate) => plainName(candidate) === plainName(form))
    if (same.length > 0) return same.length === 1 ? same[0] : undefined
  }
  const limit = name.length >= 6 ? 2 : name.length >= 4 ? 1 : 0
  const near = limit === 0 ? [] : nearNames(name, offered, limit)
  return near.length === 1 ? near[0] : undefined
}

/**
 * The parsed arguments, or the error. `repaired` is the JSON that was used instead of the model's text. It is absent if
 * the text needed no repair.
 */
export type RepairedArguments =
  | { ok: true; value: Record<string, unknown>; repaired?: string }
  | { ok: false; error: string }

/**
 * Parses the arguments of a call. Repairs only unambiguous defects: empty text or `null` (becomes `{}`), JSON in a JSON
 * string, a code fence, text after the object, trailing commas, and raw line breaks and tabs in strings. Of several
 * objects, one after another, uses the last complete one. Never guesses content: truncated text remains an error. Arguments that are nested more than 200 levels deep are an
 * error.
 */
export function repairArguments(raw: string): RepairedArguments {
  const repaired = readArguments(raw)
  return repaired.ok && isTooDeep(repaired.value)
    ? { ok: false, error: `The arguments are nested more than ${maxDepth} levels deep.` }
    : repaired
}

function readArguments(raw: string): RepairedArguments {
  const direct = parseJson(raw)
  if (direct.ok && isRecord(direct.value)) return { ok: true, value: direct.value }

  const text = unfence(raw.trim())
  if (text === "" || text === "null") return { ok: true, value: {}, repaired: "{}" }
  const whole = parseJson(text)
  if (whole.ok && typeof whole.value === "string") return asRepaired(repairArguments(whole.value))
  if (whole.ok && !isRecord(whole.value)) {
    return { ok: false, error: `The arguments must be a JSON object, not ${kindOf(whole.value)}.` }
  }
  const repaired = lastObject(text)
  const parsed = repaired === undefined ? undefined : parseJson(repaired)
  if (repaired !== undefined && parsed?.ok && isRecord(parsed.value)) {
    return { ok: true, value: parsed.value, repaired }
  }
  const reason = direct.ok ? "" : ` (${direct.error})`
  return { ok: false, error: `The arguments are not valid JSON${reason}.` }
}

function asRepaired(result: RepairedArguments): RepairedArguments {
  return result.ok ? { ...result, repaired: result.repaired ?? JSON.stringify(result.value) } : result
}

function unfence(text: string): string {
  return /^```[a-z]*\s*\n?([\s\S]*?)\n?```$/i.exec(text)?.[1]?.trim() ?? text
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "an array"
  return value === null ? "null" : `a ${typeof value}`
}

const controls: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

/**
 * Returns the last of the complete objects at the start of the text, repaired. Returns undefined if the first object is
 * not closed, or if an array follows.
 */
function lastObject(text: string): string | undefined {
  let last: string | undefined
  let rest = text
  while (rest.startsWith("{")) {
    const found = firstObject(rest)
    if (found === undefined) break
    last = found.repaired
    rest = rest.slice(found.end).trimStart()
  }
  return rest.startsWith("[") ? undefined : last
}

/** Returns the repaired object at the start of the text and where it ends, or undefined if it is not closed. */
function firstObject(text: string): { repaired: string; end: number } | undefined {
  let repaired = ""
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index)
    if (inString) {
      repaired += controls[character] ?? character
      if (character === "\\") repaired += text.charAt(++index)
      else if (character === '"') inString = false
      continue
    }
    if (character === '"') inString = true
    else if (character === "{" || character === "[") depth++
    else if (character === "}" || character === "]") {
      repaired = repaired.replace(/,\s*$/, "")
      depth--
    }
    repaired += character
    if (depth === 0) return { repaired, end: index + 1 }
  }
  return undefined
}
