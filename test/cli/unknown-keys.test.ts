import { expect, test } from "vitest"
import * as z from "zod"
import { unknownKeys } from "../../src/cli/commands/tool.ts"
import { toJsonSchema } from "../../src/util/json-schema.ts"
import { createMachine } from "./run-tackle.ts"

const schema = toJsonSchema(
  z.object({
    filePath: z.string(),
    limit: z.number().optional(),
    edits: z.array(z.object({ oldString: z.string() })).optional(),
    extra: z.looseObject({ known: z.string().optional() }).optional(),
    either: z.union([z.object({ a: z.string() }), z.string()]).optional(),
  }),
)

test.each([
  [{ filePath: "a", limit: 1, extra: { other: 1 }, either: { b: 1 } }, []],
  [{ file_path: "a" }, ['unknown argument "file_path". Did you mean "filePath"?']],
  [{ path: "a" }, ['unknown argument "path". Did you mean "filePath"?']],
  [
    { edits: [{ oldString: "" }, { old: "" }] },
    ['unknown argument "edits[1].old". Did you mean "oldString"?'],
  ],
  [{ zzzzz: 1 }, ['unknown argument "zzzzz". Available arguments: filePath, limit, edits, extra, either.']],
  ["text", []],
])("reports for %j: %j", (input, said) => {
  expect(unknownKeys(schema, input)).toEqual(said)
})

test("reports every argument of a tool without arguments, and none for an open schema", () => {
  expect(unknownKeys(toJsonSchema(z.object({})), { a: 1 })).toEqual([
    'unknown argument "a". The tool accepts no arguments.',
  ])
  expect(unknownKeys({ type: "object", properties: { a: {} } }, { b: 1 })).toEqual([])
  expect(unknownKeys({}, { constructor: 1 })).toEqual([])
})

test("reports an unknown argument of tool call, and makes the call", async () => {
  const machine = await createMachine({ files: { "a.txt": "one\ntwo\n" }, config: null })
  const call = await machine.run(["tool", "call", "read", '{"filePath":"a.txt","ofset":1,"toString":2}'])
  expect(call).toMatchObject({ code: 0, stdout: expect.stringContaining("1→one") })
  expect(call.stderr.split("\n").slice(0, 2)).toEqual([
    'tackle: read: unknown argument "ofset". Did you mean "offset"?',
    'tackle: read: unknown argument "toString". Available arguments: filePath, offset, limit.',
  ])
  const wrong = await machine.run(["tool", "call", "read", "-", "--format", "json"], {
    stdin: '{"path":"a.txt"}',
  })
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('unknown argument "path". Did you mean "filePath"?')
  expect(JSON.parse(wrong.stdout)).toMatchObject({ status: "error" })
})
