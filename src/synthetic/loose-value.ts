import { isTooDeep, maxDepth, parseJson } from "../util/json.ts"
import { endsString, lookAhead, opensQuotedObject } from "./scan-json.ts"

/** The result of reading JSON or a Python literal. */
type LooseValue = { ok: true; value: unknown; exact: boolean } | { ok: false; error: string }

/**
 * Reads JSON and common deviations: Python quotes and constants, bare keys, extra commas, raw line breaks and quotes
 * in strings, and missing closing brackets at the end. `exact` is false if the text deviates from JSON. Never guesses
 * content: an unterminated string or a missing value is an error.
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
