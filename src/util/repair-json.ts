import { isRecord, parseJson } from "./json.ts"
import { nearNames } from "./similarity.ts"

/**
 * The offered name that a model must have meant: the same but for case, `-`, `_`, spaces or a prefix such as
 * `functions.`; else the only one within a slip of the finger (one letter from four letters on, two from six).
 * Undefined where none or several fit.
 */
export function repairName(name: string, offered: readonly string[]): string | undefined {
  if (offered.includes(name)) return name
  for (const form of [name, name.split(/[.:/]/).at(-1) ?? ""]) {
    const same = offered.filter((candidate) => plain(candidate) === plain(form))
    if (same.length > 0) return same.length === 1 ? same[0] : undefined
  }
  const limit = name.length >= 6 ? 2 : name.length >= 4 ? 1 : 0
  const near = limit === 0 ? [] : nearNames(name, offered, limit)
  return near.length === 1 ? near[0] : undefined
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_\s]/g, "")
}

/** `repaired` is the JSON that was read instead of the text, where the text itself was none. */
export type RepairedArguments =
  | { ok: true; value: Record<string, unknown>; repaired?: string }
  | { ok: false; error: string }

/**
 * The arguments of a call. Mends what has one meaning only: nothing at all (`{}`), JSON within a JSON string, a code
 * fence, text after the object, commas before a closing bracket, raw line breaks within strings. Content is never
 * guessed: what was cut off stays an error, and so does a second object after the first.
 */
export function repairArguments(raw: string): RepairedArguments {
  const direct = parseJson(raw)
  if (direct.ok && isRecord(direct.value)) return { ok: true, value: direct.value }

  const text = unfence(raw.trim())
  if (text === "" || text === "null") return { ok: true, value: {}, repaired: "{}" }
  const whole = parseJson(text)
  if (whole.ok && typeof whole.value === "string") return asRepaired(repairArguments(whole.value))
  if (whole.ok && !isRecord(whole.value)) {
    return { ok: false, error: `The arguments must be a JSON object, not ${kindOf(whole.value)}.` }
  }
  const mended = firstObject(text)
  const parsed = mended === undefined ? undefined : parseJson(mended)
  if (mended !== undefined && parsed?.ok && isRecord(parsed.value)) {
    return { ok: true, value: parsed.value, repaired: mended }
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

/** The object at the start of the text, mended; undefined if it never closes or another value follows it. */
function firstObject(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined
  let mended = ""
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index)
    if (inString) {
      mended += controls[character] ?? character
      if (character === "\\") mended += text.charAt(++index)
      else if (character === '"') inString = false
      continue
    }
    if (character === '"') inString = true
    else if (character === "{" || character === "[") depth++
    else if (character === "}" || character === "]") {
      mended = mended.replace(/,\s*$/, "")
      depth--
    }
    mended += character
    if (depth === 0) return /^\s*[{[]/.test(text.slice(index + 1)) ? undefined : mended
  }
  return undefined
}
