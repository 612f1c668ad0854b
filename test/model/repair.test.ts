import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { repairArguments, repairName } from "../../src/util/repair-json.ts"

describe("repairName", () => {
  const offered = ["bash", "read", "write", "todowrite", "todoread", "apply_patch", "ls", "web-fetch"]

  test.each([
    ["read", "read"],
    ["Read", "read"],
    ["READ", "read"],
    ["functions.read", "read"],
    ["functions:Bash", "bash"],
    ["todo_write", "todowrite"],
    ["TodoRead", "todoread"],
    ["applyPatch", "apply_patch"],
    ["apply-patch", "apply_patch"],
    ["web_fetch", "web-fetch"],
    ["wrte", "write"],
    ["aply_pach", "apply_patch"],
    ["read<|channel|>commentary", "read"],
    ["read<|constrain|>json", "read"],
    ["functions.apply_patch<|channel|>analysis", "apply_patch"],
    ["functions.read:0", "read"],
    ["Web_Fetch:12", "web-fetch"],
  ])("%s is %s", (name, expected) => {
    expect(repairName(name, offered)).toBe(expected)
  })

  test.each(["", "rm", "l", "edit", "delete", "run_command", "readwrite", "todo", "rwad_e"])(
    "%j is nothing that is offered",
    (name) => {
      expect(repairName(name, offered)).toBeUndefined()
    },
  )

  test("returns nothing if two names match", () => {
    expect(repairName("FOO-BAR", ["foo_bar", "foobar"])).toBeUndefined()
    expect(repairName("search_x", ["search_a", "search_b"])).toBeUndefined()
  })
})

describe("repairArguments", () => {
  test.each([
    ["", {}],
    ["  \n", {}],
    ["null", {}],
    ['"{\\"a\\":1}"', { a: 1 }],
    ['"\\"{\\\\\\"a\\\\\\":1}\\""', { a: 1 }],
    ['```json\n{"a":1}\n```', { a: 1 }],
    ['```{"a":1}```', { a: 1 }],
    ['{"a":1,}', { a: 1 }],
    ['{"a":[1,2, ],"b":{"c":1 ,\n},}', { a: [1, 2], b: { c: 1 } }],
    ['{"a":1}</tool_call>', { a: 1 }],
    ['{"a":"}"} That is all.', { a: "}" }],
    ['{"a":"line\nnext\ttab"}', { a: "line\nnext\ttab" }],
    ['{}{"a":1}', { a: 1 }],
    ['{"a":1}{"a":2}', { a: 2 }],
    ['{"a":1}\n {"b":2,} {"c":[{}]} Done.', { c: [{}] }],
    ['{"a":1}{"b":', { a: 1 }],
    ['{"a":"keep ,} and \\" this"} x', { a: 'keep ,} and " this' }],
  ])("%j is read", (raw, value) => {
    const result = repairArguments(raw)
    expect(result).toMatchObject({ ok: true, value })
    expect(result.ok && JSON.parse(result.repaired ?? "0")).toEqual(value)
  })

  test.each([
    '{"a":1',
    '{"a":"cut',
    '{"a":1}{"a":2} [3]',
    '{"a":1} [2]',
    "{a:1}",
    "[1]",
    "12",
    "true",
    "ls -la",
    '"ls -la"',
    "{'a':1}",
    '{"a":1]]',
  ])("%j stays an error", (raw) => {
    expect(repairArguments(raw)).toMatchObject({ ok: false, error: expect.stringMatching(/^The arguments/) })
  })

  const object = fc.dictionary(fc.string(), fc.jsonValue())

  test("keeps valid arguments unchanged", () => {
    fc.assert(
      fc.property(object, (value) => {
        const copy = JSON.parse(JSON.stringify(value))
        expect(repairArguments(JSON.stringify(value))).toEqual({ ok: true, value: copy })
      }),
    )
  })

  test("never accepts truncated arguments", () => {
    fc.assert(
      fc.property(object, fc.nat(), (value, at) => {
        const text = JSON.stringify(value)
        const cut = text.slice(0, 1 + (at % (text.length - 1)))
        expect(repairArguments(cut).ok).toBe(false)
      }),
    )
  })

  test("reads an object that is followed by text, double-encoded or fenced", () => {
    fc.assert(
      fc.property(object, (value) => {
        const text = JSON.stringify(value)
        const copy = JSON.parse(text)
        for (const raw of [`${text} done`, JSON.stringify(text), `\`\`\`json\n${text}\n\`\`\``]) {
          expect(repairArguments(raw)).toMatchObject({ ok: true })
          const result = repairArguments(raw)
          expect(result.ok && result.value).toEqual(copy)
        }
      }),
    )
  })
})
