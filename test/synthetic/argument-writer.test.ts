import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createArgumentWriter } from "../../src/synthetic/argument-writer.ts"

/** Writes the text in pieces, and ends with the repaired input. */
function write(pieces: readonly string[], input: string) {
  const writer = createArgumentWriter()
  const sent = pieces.map((piece) => writer.push(piece)).join("")
  const end = writer.end(input)
  return { sent, whole: end?.whole, all: end && sent + end.rest }
}

const repairs: [about: string, text: string, input: object, sent: string][] = [
  ["quotes of Python", "{'path': 'a'}", { path: "a" }, "{"],
  ["words of Python", '{"path": "a", "all": True}', { path: "a", all: true }, '{"path": "a", "all":'],
  [
    "quotes that are not escaped",
    '{"c": "echo "hi" there", "t": 1}',
    { c: 'echo "hi" there', t: 1 },
    '{"c": "echo ',
  ],
  ["a quote before a comma", '{"c": "say "a", b", "t": 1}', { c: 'say "a", b', t: 1 }, '{"c": "say '],
  ["a raw line break", '{"c": "one\ntwo", "t": 1}', { c: "one\ntwo", t: 1 }, '{"c": "one'],
  ["a trailing comma", '{"a": "b",}', { a: "b" }, '{"a": "b'],
  ["a missing bracket", '{"a": {"b": ["c"', { a: { b: ["c"] } }, '{"a": {"b": ["c'],
  ["a bracket too many", '{"a": "b"}}', { a: "b" }, '{"a": "b'],
  ["a bare key", '{"a": "b", c: 1}', { a: "b", c: 1 }, '{"a": "b'],
  ["an unknown escape", String.raw`{"a": "x\d", "b": 1}`, { a: String.raw`x\d`, b: 1 }, '{"a": "x'],
  ["a list of words", '{"a": [1, None, "x"], "b": 2}', { a: [1, null, "x"], b: 2 }, '{"a": ['],
  ["a comment", '{"a": 1, // one\n "b": 2}', { a: 1, b: 2 }, '{"a":'],
]

describe("argument writer", () => {
  test.each(repairs)(
    "sends the beginning of arguments with %s, and then the repaired rest",
    (_, text, input, sent) => {
      const json = JSON.stringify(input)
      for (const pieces of [[text], text.split(""), text.match(/[\s\S]{1,3}/g) ?? []]) {
        const written = write(pieces, json)
        expect(written.sent).toBe(sent)
        expect(written.all).toBe(written.whole)
        expect(JSON.parse(written.all ?? "")).toEqual(input)
      }
    },
  )

  test("sends valid arguments as they arrive, unchanged", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(4), fc.nat(4), (value, indent, size) => {
        const text = JSON.stringify(value, undefined, indent)
        const pieces = text.match(new RegExp(`[\\s\\S]{1,${size + 1}}`, "g")) ?? []
        expect(write(pieces, text).all).toBe(text)
        // The same value in another format, as after a repair of its end.
        const again = write(pieces, JSON.stringify(value))
        expect(JSON.parse(again.all ?? "null")).toEqual(JSON.parse(text))
      }),
    )
    const writer = createArgumentWriter()
    expect(writer.push('{"path": "a", "content": "one ')).toBe('{"path": "a", "content": "one ')
    expect(writer.push("two\\")).toBe("two")
    expect(writer.push("n three")).toBe("\\n three")
  })

  test("reports that sent text does not fit the input", () => {
    const writer = createArgumentWriter()
    writer.push('{"path": "abc')
    expect(writer.end('{"path":"xyz"}')).toBeUndefined()
    expect(writer.end("not JSON")).toBeUndefined()
    expect(writer.end('{"path":"abcd","more":[1]}')?.rest).toBe('d","more":[1]}')
  })

  test("reads a long text in linear time", () => {
    const text = JSON.stringify({ content: 'x\n"é'.repeat(100_000) })
    const writer = createArgumentWriter()
    let sent = ""
    for (let at = 0; at < text.length; at += 16) sent += writer.push(text.slice(at, at + 16))
    expect(text.startsWith(sent)).toBe(true)
    expect(sent.length).toBeGreaterThan(text.length - 4)
  })
})
