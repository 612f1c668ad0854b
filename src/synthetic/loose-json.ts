import { isTooDeep, maxDepth, parseJson } from "../util/json.ts"
import { type Reading, type Source, sees, slice } from "./source.ts"

/** The result of reading JSON or a Python literal. */
type LooseValue = { ok: true; value: unknown; exact: boolean } | { ok: false; error: string }

/**
 * Reads JSON and common deviations: Python quotes and constants, bare keys, comments, extra commas, raw line breaks and
 * quotes in strings, and missing closing brackets at the end. `exact` is false if the text deviates from JSON. Never
 * guesses content: an unterminated string or a missing value is an error.
 */
export function readLooseValue(text: string): LooseValue {
  const exact = parseJson(text)
  if (exact.ok && isTooDeep(exact.value)) return { ok: false, error: tooDeep }
  if (exact.ok) return { ...exact, exact: true }
  const cursor = createCursor(text)
  try {
    const value = readValue(cursor)
    cursor.space()
    if (cursor.more()) throw new SyntaxError(`unexpected text at character ${cursor.at + 1}`)
    return { ok: true, value, exact: false }
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, error: error.message }
    throw error
  }
}

const tooDeep = `the value is nested more than ${maxDepth} levels deep`

/** A Python call with positional and named arguments. */
export interface PythonCall {
  name: string
  positional: unknown[]
  named: Record<string, unknown>
}

/** Reads one or more calls such as `name(value, key=value)`, with or without list brackets around them. */
export function readPythonCalls(
  text: string,
): { ok: true; calls: PythonCall[] } | { ok: false; error: string } {
  const cursor = createCursor(text)
  const calls: PythonCall[] = []
  try {
    cursor.space()
    const listed = cursor.open("[")
    for (;;) {
      cursor.separators()
      if (!cursor.more() || (listed && cursor.close("]"))) break
      calls.push(readCall(cursor))
    }
    cursor.space()
    if (cursor.more() || calls.length === 0)
      throw new SyntaxError(`unexpected text at character ${cursor.at + 1}`)
    return { ok: true, calls }
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false, error: error.message }
    throw error
  }
}

function readCall(cursor: Cursor): PythonCall {
  const name = cursor.match(/[A-Za-z_][\w.-]*/y)
  cursor.space()
  if (name === undefined || !cursor.open("("))
    throw new SyntaxError(`a call is missing at character ${cursor.at + 1}`)
  const call: PythonCall = { name, positional: [], named: record() }
  for (;;) {
    cursor.separators()
    if (cursor.close(")")) return call
    if (!cursor.more()) throw new SyntaxError("a bracket is not closed")
    const key = cursor.match(/[A-Za-z_][\w-]*(?=\s*=)/y)
    if (key === undefined) {
      call.positional.push(readValue(cursor))
      continue
    }
    cursor.space()
    cursor.take("=")
    call.named[key] = readValue(cursor)
  }
}

function readValue(cursor: Cursor): unknown {
  cursor.space()
  if (cursor.opensQuotedObject() && cursor.take('"')) {
    const value = readValue(cursor)
    cursor.space()
    cursor.take('"')
    return value
  }
  if (cursor.open("{")) return readObject(cursor)
  if (cursor.open("[")) return readList(cursor, "]")
  if (cursor.open("(")) return readList(cursor, ")")
  if (/["']/.test(cursor.peek())) return readString(cursor)
  const word = cursor.match(/[-+]?[\w.]+(?:[eE][-+]?\d+)?/y)
  if (word === undefined) throw new SyntaxError(`a value is missing at character ${cursor.at + 1}`)
  if (Object.hasOwn(words, word)) return words[word]
  const number = Number(word)
  if (/^[-+]?(\d|\.\d)/.test(word) && !Number.isNaN(number)) return number
  throw new SyntaxError(`"${word.slice(0, 30)}" is not a value; strings need quotes`)
}

const words: Record<string, unknown> = {
  true: true,
  false: false,
  null: null,
  True: true,
  False: false,
  None: null,
}

function readObject(cursor: Cursor): Record<string, unknown> {
  const object = record()
  for (;;) {
    cursor.separators()
    if (cursor.close("}") || !cursor.more()) return object
    const key = /["']/.test(cursor.peek()) ? readString(cursor, true) : cursor.match(/[A-Za-z_$][\w$-]*/y)
    cursor.space()
    if (key === undefined || !cursor.take(":"))
      throw new SyntaxError(`a key is missing at character ${cursor.at + 1}`)
    object[key] = readValue(cursor)
  }
}

function readList(cursor: Cursor, closing: string): unknown[] {
  const list: unknown[] = []
  for (;;) {
    cursor.separators()
    if (cursor.close(closing) || !cursor.more()) return list
    list.push(readValue(cursor))
  }
}

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0", "\n": "" }

function readString(cursor: Cursor, isKey = false): string {
  const quote = ['"""', "'''", '"', "'"].find((candidate) => cursor.take(candidate)) ?? '"'
  let value = ""
  for (;;) {
    if (!cursor.more()) throw new SyntaxError("a string is not closed")
    if (cursor.ends(quote, isKey)) return value
    if (!cursor.take("\\")) {
      value += cursor.step()
      continue
    }
    const code = cursor.match(/u[\da-fA-F]{4}|x[\da-fA-F]{2}/y)
    const letter = code === undefined ? cursor.step() : ""
    if (code !== undefined) value += String.fromCharCode(Number.parseInt(code.slice(1), 16))
    // Unknown escapes keep their backslash, as in Python.
    else value += escapes[letter] ?? (/["'\\/]/.test(letter) ? letter : `\\${letter}`)
  }
}

type Cursor = ReturnType<typeof createCursor>

function createCursor(text: string) {
  /** Open brackets, innermost last. */
  const open: string[] = []
  return {
    at: 0,
    more() {
      return this.at < text.length
    },
    peek() {
      return text.charAt(this.at)
    },
    step() {
      return text.charAt(this.at++)
    },
    take(literal: string) {
      if (!text.startsWith(literal, this.at)) return false
      this.at += literal.length
      return true
    },
    open(bracket: string) {
      if (!this.take(bracket)) return false
      if (open.length >= maxDepth) throw new SyntaxError(tooDeep)
      open.push(bracket)
      return true
    },
    close(bracket: string) {
      if (!this.take(bracket)) return false
      open.pop()
      return true
    },
    match(pattern: RegExp) {
      pattern.lastIndex = this.at
      const found = pattern.exec(text)?.[0]
      this.at += found?.length ?? 0
      return found
    },
    /** Skips white space and comments. */
    space() {
      this.match(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y)
    },
    /** Skips white space, comments, commas, and semicolons. */
    separators() {
      this.match(/(?:[\s,;]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y)
    },
    opensQuotedObject() {
      return opensQuotedObject(text.slice(this.at, this.at + lookAhead), true) === true
    },
    ends(quote: string, isKey: boolean) {
      if (!text.startsWith(quote, this.at)) return false
      const from = this.at + quote.length
      const ends = quote.length > 1 || endsString(text.slice(from, from + lookAhead), { open, isKey }, true)
      return ends === true && this.take(quote)
    },
  }
}

/** Returns an empty object in which `__proto__` is an ordinary key. */
function record(): Record<string, unknown> {
  return Object.create(null)
}

/** Reason why a scan ended. `stopped` means that the `stop` literal follows. */
type ScanEnd = "closed" | "stopped" | "ended"

/** Options for a scan. */
export interface ScanOptions {
  /** Literal that ends the value outside of strings. */
  stop?: string | undefined
  /** Receives the number of open brackets after each bracket. */
  onBracket?: (depth: number, position: number) => void
  /** Called before each wait. All text before the position has been scanned. */
  onProgress?: (position: number) => void
}

/**
 * Scans a value in brackets or quotes from the current position to its end. The value is JSON, a Python literal, or a
 * Python call. Ignores brackets in strings. A quote ends a string only if the text after the quote can follow a string.
 * Any other quote is an unescaped part of the string.
 */
export function* scanBrackets(source: Source, options: ScanOptions = {}): Reading<ScanEnd> {
  const open: string[] = []
  let depth = 0
  let quote: string | undefined
  let escaped = false
  let isKey = false
  /** The previous character other than white space. A quote after a letter is an apostrophe. */
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
      // The quote surrounds an object whose quotes are not escaped.
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

/** Returns true if the text after the quote can follow a string. */
function* endsHere(
  source: Source,
  quote: string,
  context: StringContext,
  options: ScanOptions,
): Reading<boolean> {
  if (quote.length > 1) return yield* sees(source, quote)
  for (;;) {
    const from = source.position + 1
    const ends = endsString(slice(source, from, from + lookAhead), context, source.ended)
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

/** Context of a string in the value. */
interface StringContext {
  /** Open brackets around the string, innermost last. */
  open: readonly string[]
  /** True if the string is a key of an object. */
  isKey: boolean
}

/**
 * Maximum number of characters that are examined after a quote. If these characters do not show whether the quote ends
 * the string, the quote ends the string.
 */
const lookAhead = 300

/**
 * Returns true if a quote ends its string, because the text after the quote fits the open brackets. Returns false if
 * the quote is an unescaped part of the string. Returns undefined if more text is needed to decide, but never if the
 * text is `whole`.
 */
function endsString(after: string, context: StringContext, whole: boolean): boolean | undefined {
  const text = after.slice(0, lookAhead)
  const known = whole || after.length >= lookAhead
  const { open } = context
  let depth = open.length
  let at = gapEnd(text, 0)
  if (at < text.length && context.isKey) return text[at] === ":"
  for (; at < text.length; at = gapEnd(text, at + 1)) {
    const character = text.charAt(at)
    const opening = pairs[character]
    if (depth === 0) return !/["']/.test(character)
    if (opening === undefined) return follows(text.slice(at), open[depth - 1], known)
    // Skips inner brackets that the model did not close.
    depth = open.lastIndexOf(opening, depth - 1)
    if (depth < 0) return false
  }
  return known || undefined
}

const pairs: Readonly<Record<string, string>> = { "}": "{", "]": "[", ")": "(" }

/** Matches white space and comments. */
const gap = /(?:\s|\/\/[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*/y

function gapEnd(text: string, from: number): number {
  gap.lastIndex = from
  return from + (gap.exec(text)?.[0].length ?? 0)
}

/**
 * Returns true if `rest` can follow a value within the bracket, or undefined if more text is needed. `rest` does not
 * begin with a closing bracket.
 */
function follows(rest: string, bracket: string | undefined, known: boolean): boolean | undefined {
  if (rest.startsWith("<")) return rest.length > 1 || known ? /^<[/|｜]/.test(rest) : undefined
  if (bracket === "[" && /^[{[]/.test(rest)) return true
  if (!rest.startsWith(",")) return false
  const next = rest.slice(gapEnd(rest, 1))
  if (next === "") return known || undefined
  if (/^[,\]})]/.test(next)) return true
  if (bracket !== "{")
    return /^(["'{[(\d.-]|[\w.]+\s*[=(]|true|false|null|None)/i.test(next) || mayBecomeValue(next, known)
  if (/^("(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'|[\w$-]+)\s*:/.test(next)) return true
  return /^("(\\.|[^"\\\n])*("\s*|\\)?|'(\\.|[^'\\\n])*('\s*|\\)?|[\w$-]+\s*)$/.test(next)
    ? known || undefined
    : false
}

/**
 * Returns undefined if the incomplete word may still become a value or the name of an argument or call. Otherwise,
 * returns false.
 */
function mayBecomeValue(next: string, known: boolean): boolean | undefined {
  return !known && /^[\w.]+\s*$/.test(next) ? undefined : false
}

/**
 * Returns true if the text begins with a quote and an object whose quotes are not escaped, which some models write for
 * arguments as a string. Returns undefined if more text is needed.
 */
function opensQuotedObject(text: string, whole: boolean): boolean | undefined {
  if (/^"\{\s*"(\\.|[^"\\\n])*"\s*:/.test(text)) return true
  return !whole && text.length < lookAhead && /^"(\{\s*("(\\.|[^"\\\n])*("\s*|\\)?)?)?$/.test(text)
    ? undefined
    : false
}
