import fc from "fast-check"
import { expect, test } from "vitest"
import { parseJsonc } from "../../src/config/jsonc.ts"
import { positionOf, toPlain } from "../../src/config/node.ts"

test("accepts comments, trailing commas, a byte order mark and an empty file", async () => {
  const text = '\uFEFF// first\r\n{ /* second */ "a": [1, 2,], "b": {},\r\n}\r\n'
  expect(toPlain(await parseJsonc(text, "f"))).toEqual({ a: [1, 2], b: {} })
  expect(toPlain(await parseJsonc("", "f"))).toEqual({})
  expect(toPlain(await parseJsonc("\uFEFF // only a comment", "f"))).toEqual({})
})

test.each([
  ['{ "a" 1 }', 1, 7, 'expected ":"'],
  ['{\n  "a": 1\n  "b": 2 }', 3, 3, 'expected ","'],
  ['{\r\n  "a": 1,\r\n  b: 2 }', 3, 3, "expected a key or string in double quotes"],
  ['{ "a": }', 1, 8, "expected a value"],
  ['{ "a": yes }', 1, 8, "expected a key or string in double quotes"],
  ['{ "a": [1, 2 }', 1, 14, 'expected "," or a closing bracket'],
  ['{ "a": [1, 2', 1, 13, 'expected "]"'],
  ['{ "a": 1, 2: 3 }', 1, 11, "expected a key in double quotes"],
  ['{ "a": 1', 1, 9, 'expected "}"'],
  ['{ "a": "x\n" }', 1, 8, "expected a closing double quote"],
  ['{ "a": "\\q" }', 1, 8, "expected one of"],
  ['{ "a": 1 } {}', 1, 12, "expected the end of the file"],
  ["{ /* ", 1, 3, 'expected "*/"'],
  ['\uFEFF{ "a" 1 }', 1, 7, 'expected ":"'],
])("rejects %j at %i:%i", async (text, line, column, message) => {
  const failure = parseJsonc(text, "/f.json")
  await expect(failure).rejects.toThrow(`/f.json:${line}:${column}: `)
  await expect(failure).rejects.toThrow(message)
})

test.each([600, 3_000, 100_000])("rejects a file with %i nested objects without a crash", async (depth) => {
  const text = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
  await expect(parseJsonc(text, "/f.json")).rejects.toThrow("nested too deeply")
})

test("returns every value of JSON.parse, with positions", async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (value) => {
      const text = JSON.stringify(value, null, 1)
      const tree = await parseJsonc(text, "f")
      expect(JSON.parse(JSON.stringify(toPlain(tree)))).toEqual(JSON.parse(text))
      const lines = text.split("\n")
      for (const key of Object.keys(value)) {
        const { line, column } = positionOf(tree, [key])
        expect(lines[line - 1]?.slice(column - 1).startsWith(JSON.stringify(key))).toBe(true)
      }
    }),
  )
})
