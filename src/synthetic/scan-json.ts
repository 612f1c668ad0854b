import { type Reading, type Source, sees, slice } from "./source.ts"

/** How the reading of a bracketed value ended. `stopped`: before the literal that ends what it stands in. */
type ScanEnd = "closed" | "stopped" | "ended"

/** What ends the reading early, and who hears how far it is. */
interface ScanOptions {
  /** Ends the value wherever it comes outside of a string. */
  stop?: string | undefined
  /** The brackets that stand open at a place just read; behind a closing one the fewer. */
  onBracket?: (depth: number, position: number) => void
  /** Told before each wait: everything before the position was read. */
  onProgress?: (position: number) => void
}

/**
 * Reads the value in brackets or quotes that begins at the source's position, whose end is its own closing bracket:
 * JSON, or a Python literal or call. Brackets within strings do not count; a quote counts as a string's end only where
 * something follows that can follow the string there, so that quotes which the model forgot to escape do no harm.
 */
export function* scanBrackets(source: Source, options: ScanOptions = {}): Reading<ScanEnd> {
  const open: string[] = []
  let depth = 0
  let quote: string | undefined
  let escaped = false
  let isKey = false
  /** The last character that was no white space: a quote behind a letter is an apostrophe. */
  let before = ""
  for (;;) {
    if (source.position >= source.text.length) {
      if (source.ended) {
        source.unclosed += 1
        return "ended"
      }
      options.onProgress?.(source.position)
      yield
      continue
    }
    const character = slice(source, source.position, source.position + 1)
    if (quote !== undefined) {
      if (escaped || character === "\\") {
        escaped = !escaped
        source.position += 1
      } else if (character === quote[0] && (yield* endsHere(source, quote, { open, isKey }, options))) {
        source.position += quote.length
        quote = undefined
        if (depth <= 0) return "closed"
      } else source.position += 1
      continue
    }
    if (options.stop?.[0] === character && (yield* sees(source, options.stop))) return "stopped"
    if (character === '"' && (/[}\]]/.test(before) || (yield* beginsQuotedObject(source, before)))) {
      // Around an object that was meant as a text: what is in it was not escaped.
      source.position += 1
    } else if (character === '"' || (character === "'" && /[[{(,:=]/.test(before))) {
      const triple = character.repeat(3)
      quote = (yield* sees(source, triple)) ? triple : character
      source.position += quote.length
      isKey = open.at(-1) === "{" && /[{,]/.test(before)
    } else {
      source.position += 1
      if (/[[{(]/.test(character)) open.push(character)
      else if (/[\]})]/.test(character)) open.pop()
      if (/[[{()}\]]/.test(character)) {
        depth += /[[{(]/.test(character) ? 1 : -1
        options.onBracket?.(depth, source.position)
      }
    }
    if (/\S/.test(character)) before = character
    if (depth <= 0 && quote === undefined) return "closed"
  }
}

/** Looks behind the quote for what may follow a string. */
function* endsHere(
  source: Source,
  quote: string,
  place: StringPlace,
  options: ScanOptions,
): Reading<boolean> {
  if (quote.length > 1) return yield* sees(source, quote)
  for (;;) {
    const from = source.position + 1
    const ends = endsString(slice(source, from, from + lookAhead), place, source.ended)
    if (ends !== undefined) return ends
    options.onProgress?.(source.position)
    yield
  }
}

function* beginsQuotedObject(source: Source, before: string): Reading<boolean> {
  if (before !== ":") return false
  for (;;) {
    const begins = opensQuotedObject(
      slice(source, source.position, source.position + lookAhead),
      source.ended,
    )
    if (begins !== undefined) return begins
    yield
  }
}

/** Where a string stands whose end is looked for. */
interface StringPlace {
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
