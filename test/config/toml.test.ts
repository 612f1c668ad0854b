import fc from "fast-check"
import { stringify } from "smol-toml"
import { expect, test } from "vitest"
import { positionOf, toPlain } from "../../src/config/node.ts"
import { parseToml } from "../../src/config/toml.ts"

const text = `\uFEFFmodel = "a/b" # first
instructions = [
  "a.md", # "not = a key"
  'b.md',
]
"quoted key" = """
fake = 1
"""""
'lit"eral' = '''
[fake]
'''
"uni\\u0063ode" = 1979-05-27

[ provider . "a.b" ]
name = "x"
options = { headers = { "x-1" = "y", two.three = "z" }, timeout = 5 }
[[provider.list]]
first = 1
[[provider.list]]
first = 2
[provider.list.inner]
deep = true
`

test.each([
  [["model"], 1, 1],
  [["instructions"], 2, 1],
  [["quoted key"], 6, 1],
  [['lit"eral'], 9, 1],
  [["unicode"], 12, 1],
  [["provider"], 14, 3],
  [["provider", "a.b", "name"], 15, 1],
  [["provider", "a.b", "options", "headers", "x-1"], 16, 25],
  [["provider", "a.b", "options", "headers", "two", "three"], 16, 38],
  [["provider", "a.b", "options", "timeout"], 16, 57],
  [["provider", "list", 0, "first"], 18, 1],
  [["provider", "list", 1, "first"], 20, 1],
  [["provider", "list", 1, "inner", "deep"], 22, 1],
])("finds %j at %i:%i", async (path, line, column) => {
  expect(positionOf(await parseToml(text, "/f.toml"), path)).toEqual({ file: "/f.toml", line, column })
})

test("returns the values of the library, with keys in written order", async () => {
  const tree = await parseToml(text, "f")
  expect(toPlain(tree)).toMatchObject({
    model: "a/b",
    instructions: ["a.md", "b.md"],
    'lit"eral': "[fake]\n",
  })
  const numbers = await parseToml('b = 1\n10 = 1\n9 = 1\n[a.3]\n[a.2]\n__proto__ = "x"', "f")
  expect(numbers.entries.map(({ key }) => key)).toEqual(["b", "10", "9", "a"])
})

test("reports a syntax error with its location and no line of the file", async () => {
  const failure = parseToml('model = "x"\napiKey = "SECRET\nname = "y"', "/f.toml")
  await expect(failure).rejects.toThrow(/^\/f\.toml:2:17: [^\n]+$/)
  await expect(failure).rejects.not.toThrow(/SECRET/)
})

test("reads a long text and rejects deep nesting without a crash", async () => {
  const long = `a = """${"x\\\\".repeat(250_000)}"""\nb = 1`
  expect(positionOf(await parseToml(long, "f"), ["b"]).line).toBe(2)
  await expect(parseToml(`a = ${"[".repeat(100_000)}`, "f")).rejects.toThrow(/^f:1:/)
})

test("finds every key of every table in the text", async () => {
  const key = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.constantFrom("1", "20", "a.b", '"', "'", "#", "=", "]"),
  )
  const leaf = fc.oneof(fc.string(), fc.integer(), fc.array(fc.string()))
  const table = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf)))
  await fc.assert(
    fc.asyncProperty(table, async (value) => {
      const written = stringify(value)
      const tree = await parseToml(written, "f")
      const lines = written.split("\n")
      for (const entry of tree.entries) {
        const line = lines[entry.position.line - 1]?.slice(entry.position.column - 1) ?? ""
        const quoted = JSON.stringify(entry.key)
        expect([entry.key[0], quoted[0], "'"]).toContain(line[0])
        // No two neighbours share a position.
        expect(tree.entries.filter(({ position }) => position.line === entry.position.line)).toHaveLength(1)
      }
    }),
  )
})
