/** Where a string stands whose end is looked for. */
export interface StringPlace {
  /** The brackets that stand open around it, the innermost last. */
  open: readonly string[]
  /** It is a key of an object. */
  isKey: boolean
}

/** As far as is looked behind a quote, in characters. What is not decided by then is taken for the string's end. */
export const lookAhead = 300

/**
 * True where a quote ends its string: what stands behind it is what must come there, by the brackets that are open. Any
 * other quote was meant as a character of the string, which the model forgot to escape. Undefined: more text is needed,
 * which is never so where the text is `whole`.
 */
export function endsString(after: string, place: StringPlace, whole: boolean): boolean | undefined {
  const text = after.slice(0, lookAhead)
  const known = whole || after.length >= lookAhead
  const { open } = place
  let depth = open.length
  let at = gapEnd(text, 0)
  if (at < text.length && place.isKey) return text[at] === ":"
  for (; at < text.length; at = gapEnd(text, at + 1)) {
    const character = text.charAt(at)
    const opening = pairs[character]
    if (depth === 0) return !/["']/.test(character)
    if (opening === undefined) return follows(text.slice(at), open[depth - 1], known)
    // A bracket that was forgotten is closed by the next one further out.
    depth = open.lastIndexOf(opening, depth - 1)
    if (depth < 0) return false
  }
  return known || undefined
}

const pairs: Readonly<Record<string, string>> = { "}": "{", "]": "[", ")": "(" }

/** White space and comments. */
const gap = /(?:\s|\/\/[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*/y

function gapEnd(text: string, from: number): number {
  gap.lastIndex = from
  return from + (gap.exec(text)?.[0].length ?? 0)
}

/** What may stand behind a value within the bracket. `rest` begins with no closing bracket. */
function follows(rest: string, bracket: string | undefined, known: boolean): boolean | undefined {
  if (rest.startsWith("<")) return rest.length > 1 || known ? /^<[/|｜]/.test(rest) : undefined
  if (bracket === "[" && /^[{[]/.test(rest)) return true
  if (!rest.startsWith(",")) return false
  const next = rest.slice(gapEnd(rest, 1))
  if (next === "") return known || undefined
  if (/^[,\]})]/.test(next)) return true
  if (bracket !== "{")
    return /^(["'{[(\d.-]|[\w.]+\s*[=(]|true|false|null|None)/i.test(next) || stillMay(next, known)
  if (/^("(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'|[\w$-]+)\s*:/.test(next)) return true
  return /^("(\\.|[^"\\\n])*("\s*|\\)?|'(\\.|[^'\\\n])*('\s*|\\)?|[\w$-]+\s*)$/.test(next)
    ? known || undefined
    : false
}

/** A word that may yet become one that is a value, or a name of an argument or a call. */
function stillMay(next: string, known: boolean): boolean | undefined {
  return !known && /^[\w.]+\s*$/.test(next) ? undefined : false
}

/**
 * True where the text begins with a quote and behind it an object whose own quotes are not escaped: arguments that were
 * meant as a text. Undefined: more text is needed.
 */
export function opensQuotedObject(text: string, whole: boolean): boolean | undefined {
  if (/^"\{\s*"(\\.|[^"\\\n])*"\s*:/.test(text)) return true
  return !whole && text.length < lookAhead && /^"(\{\s*("(\\.|[^"\\\n])*("\s*|\\)?)?)?$/.test(text)
    ? undefined
    : false
}
