import { canonicalJson, isRecord, parseJson } from "../util/json.ts"

/** Streams the arguments of a call before it is known whether they need repair. */
export interface ArgumentWriter {
  /**
   * Adds arguments as the model wrote them. Returns the text that can already be sent because no repair can change
   * it.
   */
  push(text: string): string
  /**
   * Ends the arguments. In the result, `whole` is the complete JSON text of `input`, and `rest` is the part of
   * `whole` that has not been sent yet. Returns undefined if `input` does not match the text that was sent.
   */
  end(input: string): { rest: string; whole: string } | undefined
}

/** An open object or list in the sent text. */
interface Open {
  /** Keys of an object. The last key belongs to the current value. Undefined for a list. */
  keys: string[] | undefined
  /** Index of the current value of a list. */
  index: number
}

/**
 * Creates a writer for one call. The writer sends only strict JSON. It holds back the end of a string until the next
 * key or value follows, because an unescaped quote can look like the end of the string.
 */
export function createArgumentWriter(): ArgumentWriter {
  const reader = createReader()
  let sent = ""
  return {
    push(text) {
      const added = reader.read(text)
      sent += added
      return added
    },
    end(input) {
      if (input.startsWith(sent)) return { rest: input.slice(sent.length), whole: input }
      const value = parseJson(input)
      if (!value.ok || !isRecord(value.value)) return undefined
      const rest = completion(reader.place(), value.value)
      if (rest === undefined) return undefined
      const whole = parseJson(sent + rest)
      const fits = whole.ok && canonicalJson(whole.value) === canonicalJson(value.value)
      return fits ? { rest, whole: sent + rest } : undefined
    },
  }
}

/** The position at the end of the sent text. */
interface Place {
  open: readonly Open[]
  /** The text of the current string so far, with its escapes decoded. Undefined outside of string values. */
  string: string | undefined
  /** Whether the sent text ends directly after an opening bracket. */
  isFresh: boolean
}

/** The next character that strict JSON allows, apart from white space. */
type Expected = "value" | "first" | "key" | "colon" | "comma" | "nothing"

/** Characters of a string that need no decoding. */
const plainText = /[ !#-[\]-\u{10ffff}]+/uy

/** A complete escape in a string, or the start of one. */
const wholeEscape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const escapeStart = /\\(?:u[\da-fA-F]{0,3})?$/y

/** Creates a reader for strict JSON that returns only the text that is certain. */
function createReader() {
  const open: Open[] = []
  let expected: Expected = "value"
  /** Text that was read but is not certain yet. */
  let held = ""
  /** Text that waits for the rest of an escape. */
  let waiting = ""
  /** The content of the current key or string value. */
  let string: { text: string; isKey: boolean } | undefined
  /** The current number or word. */
  let word = ""
  /** The latest certain position. */
  let place: Place = { open: [], string: undefined, isFresh: false }

  function certain(position: Omit<Place, "open">): string {
    const text = held
    held = ""
    place = { open: open.map(({ keys, index }) => ({ keys: keys && [...keys], index })), ...position }
    return text
  }

  function match(pattern: RegExp, text: string, at: number): string {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0] ?? ""
  }

  /** Reads the next part of a string. Returns the end of the part, or undefined if the text ends within an escape. */
  function readString(text: string, at: number): number | undefined {
    if (string === undefined) return at
    const plain = match(plainText, text, at)
    const escaped = plain === "" ? match(wholeEscape, text, at) : ""
    if (plain !== "" || escaped !== "") {
      string.text += plain || String(JSON.parse(`"${escaped}"`))
      return at + plain.length + escaped.length
    }
    if (match(escapeStart, text, at) !== "") return undefined
    if (text[at] !== '"') {
      expected = "nothing"
      return text.length
    }
    expected = string.isKey ? "colon" : "comma"
    if (!string.isKey) string = undefined
    return at + 1
  }

  function structure(character: string): string {
    const current = open.at(-1)
    const isValue = expected === "value" || (expected === "first" && current?.keys === undefined)
    if (isValue && /["\d{[tfn-]/.test(character)) return value(character)
    if (character === '"' && (expected === "key" || (expected === "first" && current?.keys))) {
      string = { text: "", isKey: true }
      expected = "key"
      return ""
    }
    if (character === ":" && expected === "colon") {
      current?.keys?.push(string?.text ?? "")
      string = undefined
      expected = "value"
      return certain({ string: undefined, isFresh: false })
    }
    if (character === "," && expected === "comma" && current !== undefined) {
      current.index += 1
      expected = current.keys === undefined ? "value" : "key"
      return ""
    }
    const closes = current !== undefined && character === (current.keys === undefined ? "]" : "}")
    if (closes && (expected === "comma" || expected === "first")) {
      open.pop()
      expected = open.length === 0 ? "nothing" : "comma"
      return ""
    }
    expected = "nothing"
    return ""
  }

  function value(character: string): string {
    if (character === "{" || character === "[") {
      open.push({ keys: character === "{" ? [] : undefined, index: 0 })
      expected = "first"
      return certain({ string: undefined, isFresh: true })
    }
    expected = "comma"
    if (character !== '"') {
      word = character
      return ""
    }
    string = { text: "", isKey: false }
    return certain({ string: "", isFresh: false })
  }

  return {
    place: () => place,
    read(added: string): string {
      const text = waiting + added
      waiting = ""
      let read = ""
      for (let at = 0; at < text.length && expected !== "nothing"; ) {
        const character = text.charAt(at)
        if (string !== undefined && expected !== "colon") {
          const { isKey } = string
          const end = readString(text, at)
          if (end === undefined) {
            waiting = text.slice(at)
            return read
          }
          held += text.slice(at, end)
          at = end
          if (string !== undefined && !isKey && !isStopped())
            read += certain({ string: string.text, isFresh: false })
          continue
        }
        if (word !== "" && /[\w.+-]/.test(character)) {
          word += character
          held += character
          at += 1
          continue
        }
        if (word !== "") {
          expected = parseJson(word).ok ? expected : "nothing"
          word = ""
          if (isStopped()) return read
        }
        held += character
        at += 1
        if (!/\s/.test(character)) read += structure(character)
      }
      return read
    },
  }

  function isStopped(): boolean {
    return expected === "nothing"
  }
}

/**
 * Returns the JSON text that completes the value after the sent text, or undefined if the sent text does not match the
 * value.
 */
function completion({ open, string, isFresh }: Place, value: Record<string, unknown>): string | undefined {
  const values: unknown[] = [value]
  for (const { keys, index } of open.slice(0, isFresh ? -1 : undefined)) {
    const outer = values.at(-1)
    const key = keys === undefined ? index : keys.at(-1)
    if (key === undefined || typeof outer !== "object" || outer === null) return undefined
    values.push((outer as Record<string | number, unknown>)[key])
  }
  const current = values.at(-1)
  const isList = open.at(-1)?.keys === undefined
  if (open.length > 0 && isFresh && Array.isArray(current) !== isList) return undefined
  if (current === undefined) return undefined
  let text = JSON.stringify(current)
  if (string !== undefined) {
    if (typeof current !== "string" || !current.startsWith(string)) return undefined
    text = JSON.stringify(current.slice(string.length)).slice(1)
  } else if (isFresh) text = text.slice(1)
  // Close the containers around the value, innermost first.
  for (let level = open.length - (isFresh ? 2 : 1); level >= 0; level--) {
    const { keys, index } = open[level] ?? { keys: undefined, index: 0 }
    const outer = values[level]
    const rest =
      keys === undefined
        ? (outer as unknown[]).slice(index + 1).map((item) => JSON.stringify(item))
        : Object.entries(outer as object)
            .filter(([key]) => !keys.includes(key))
            .map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(item)}`)
    text += [...rest.map((item) => `,${item}`), keys === undefined ? "]" : "}"].join("")
  }
  return text
}
