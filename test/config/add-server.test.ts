import fc from "fast-check"
import { parse, stripComments } from "jsonc-parser"
import { expect, test } from "vitest"
import { insertProperty } from "../../src/config/add-server.ts"

const added = { key: "new", value: { command: ["npx", "x"], on: true } }

test.each<[string, string, string[], string]>([
  [
    "adds after the comments of the last property, with the file's trailing commas",
    '{\n  "mcp": {\n    "a": 1, // one\n    // more\n  },\n}\n',
    ["mcp"],
    '{\n  "mcp": {\n    "a": 1, // one\n    // more\n    "new": {\n      "command": ["npx", "x"],\n      "on": true\n    },\n  },\n}\n',
  ],
  [
    "puts the comma before a comment",
    '{\n\t"a": 1 // one\n}',
    [],
    '{\n\t"a": 1, // one\n\t"new": {\n\t\t"command": ["npx", "x"],\n\t\t"on": true\n\t}\n}',
  ],
  [
    "adds to an object on one line",
    '{ "a": 1 }',
    [],
    '{ "a": 1,\n  "new": {\n    "command": ["npx", "x"],\n    "on": true\n  }\n}',
  ],
  [
    "adds to a file with only comments",
    "// mine",
    [],
    '// mine\n{\n  "new": {\n    "command": ["npx", "x"],\n    "on": true\n  }\n}\n',
  ],
  ["adds to an empty file", "", [], '{\n  "new": {\n    "command": ["npx", "x"],\n    "on": true\n  }\n}\n'],
  [
    "keeps the file's line ends and byte order mark",
    "\uFEFF{\r\n    // none\r\n}\r\n",
    [],
    '\uFEFF{\r\n    // none\r\n    "new": {\r\n        "command": ["npx", "x"],\r\n        "on": true\r\n    }\r\n}\r\n',
  ],
])("%s", async (_, text, path, expected) => {
  expect(await insertProperty(text, path, added)).toBe(expected)
})

test("adds the property and keeps the rest of any file", async () => {
  const space = fc.constantFrom("", " ", "\n", "\n  ", " // c, }\n", "/* { */", "\r\n\t", ",".repeat(0))
  const members = fc.uniqueArray(fc.constantFrom("a", "b", '{"', "//"), { maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(
      members,
      fc.array(space, { minLength: 16, maxLength: 16 }),
      fc.boolean(),
      async (keys, gaps, comma) => {
        const gap = () => gaps.pop() ?? ""
        const inside = keys.map((key) => `${gap()}${JSON.stringify(key)}${gap()}:${gap()}[1, {}]${gap()}`)
        const text = `${gap()}{${inside.join(",")}${comma && keys.length > 0 ? "," : ""}${gap()}}${gap()}`
        const changed = await insertProperty(text, [], added)
        expect(parse(changed)).toEqual({ ...parse(text), new: added.value })
        const comments = (whole: string) => [...whole.matchAll(/\/\/ c, \}|\/\* \{ \*\//g)].length
        expect(comments(changed)).toBe(comments(text))
        const own = changed.replace(/"new": \{[^}]*\},?/, "")
        const bare = (whole: string) => stripComments(whole).replace(/[\s,]/g, "")
        expect(bare(own)).toBe(bare(text))
      },
    ),
  )
})
