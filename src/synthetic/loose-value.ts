import { endsString, lookAhead, opensQuotedObject } from "./scan-json.ts"

/** A value read from JSON or from a Python literal. */
type LooseValue = { ok: true; value: unknown; exact: boolean } | { ok: false; error: string }

/**
 * Reads JSON, and what models write in its place: Python's quotes and words, bare keys, commas too many, raw line
 * breaks and quotes within a string, closing brackets that are missing at the end. `exact` is false where the text was
 * no JSON. Content is not guessed: a string that does not end, or a value that is missing, is an error.
 */
export function readLooseValue(text: string): LooseValue {
  try {
    return { ok: true, value: JSON.parse(text), exact: true }
  } catch {
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
}

/** A call as Python writes it: positional values, and those with a name. */
export interface PythonCall {
  name: string
  positional: unknown[]
  named: Record<string, unknown>
}

/** Reads `name(value, key=value)`, one or several, with or without a list's brackets around them. */
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
  if (name === undefined || !cursor.open("(")) throw new SyntaxError(`no call at character ${cursor.at + 1}`)
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
  throw new SyntaxError(`"${word.slice(0, 30)}" is no value; strings need quotes`)
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
    // What is no escape keeps its backslash, as in Python.
    else value += escapes[letter] ?? (/["'\\/]/.test(letter) ? letter : `\\${letter}`)
  }
}

type Cursor = ReturnType<typeof createCursor>

function createCursor(text: string) {
  /** The brackets that were opened and not closed. */
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
    /** Passes over white space and comments. */
    space() {
      this.match(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y)
    },
    /** And over commas. */
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

/** A key named `__proto__` stays a key. */
function record(): Record<string, unknown> {
  return Object.create(null)
}
