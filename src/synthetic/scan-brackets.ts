import { type Reading, type Source, sees, slice } from "./source.ts"
import { endsString, lookAhead, opensQuotedObject, type StringPlace } from "./string-end.ts"

/** How the reading of a bracketed value ended. `stopped`: before the literal that ends what it stands in. */
export type ScanEnd = "closed" | "stopped" | "ended"

/** What ends the reading early, and who hears how far it is. */
export interface ScanOptions {
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
