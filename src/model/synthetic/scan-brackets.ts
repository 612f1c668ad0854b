import { charAt, type Reading, type Source, sees, slice } from "./source.ts"

/** How the reading of a bracketed value ended. `stopped`: before the literal that ends what it stands in. */
export type ScanEnd = "closed" | "stopped" | "ended"

export interface ScanOptions {
  /** Ends the value wherever it comes outside of a string. */
  stop?: string | undefined
  /** The brackets that stand open at a place just read; behind a closing one the fewer. */
  onBracket?: (depth: number, position: number) => void
  /** Told before each wait: everything before the position was read. */
  onProgress?: (position: number) => void
}

/**
 * Reads the value in brackets that begins at the source's position, whose end is its own closing bracket: JSON, or a
 * Python literal or call. Brackets within strings do not count; a quote counts as a string's end only where something
 * follows that can follow a string, so that quotes which the model forgot to escape do no harm.
 */
export function* scanBrackets(source: Source, options: ScanOptions = {}): Reading<ScanEnd> {
  let depth = 0
  let quote: string | undefined
  let escaped = false
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
      } else if (character === quote[0] && (yield* endsHere(source, quote, options))) {
        source.position += quote.length
        quote = undefined
      } else source.position += 1
      continue
    }
    if (options.stop?.[0] === character && (yield* sees(source, options.stop))) return "stopped"
    if (character === '"' || (character === "'" && /[[{(,:=]/.test(before))) {
      const triple = character.repeat(3)
      quote = (yield* sees(source, triple)) ? triple : character
      source.position += quote.length
    } else {
      source.position += 1
      const step = /[[{(]/.test(character) ? 1 : /[\]})]/.test(character) ? -1 : 0
      depth += step
      if (step !== 0) options.onBracket?.(depth, source.position)
    }
    if (/\S/.test(character)) before = character
    if (depth <= 0) return "closed"
  }
}

/** Looks behind the quote, over white space, for what may follow a string. */
function* endsHere(source: Source, quote: string, options: ScanOptions): Reading<boolean> {
  if (quote.length > 1) return yield* sees(source, quote)
  for (let offset = 1; ; offset++) {
    if (source.position + offset >= source.text.length) options.onProgress?.(source.position)
    const character = yield* charAt(source, offset)
    if (character === "" || offset > lookAhead) return true
    if (/\S/.test(character)) return /[,:}\])<;]/.test(character)
  }
}

/** As far as `endsString` looks, so that both find the same end. */
const lookAhead = 200
