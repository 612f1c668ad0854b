import { expect, test } from "vitest"
import * as z from "zod"
import { unknownKeys } from "../../src/tool/unknown-keys.ts"
import { toJsonSchema } from "../../src/util/json-schema.ts"

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
  [{ file_path: "a" }, [["file_path", "filePath"]]],
  [{ path: "a" }, [["path", "filePath"]]],
  [{ filePath: "a", lmt: 5 }, [["lmt", "limit"]]],
  [{ edits: [{ oldString: "" }, { old: "" }] }, [["edits[1].old", "oldString"]]],
  [{ zzzzz: 1 }, [["zzzzz", undefined]]],
  ["text", []],
])("finds in %j: %j", (input, found) => {
  expect(unknownKeys(schema, input).map(({ path, near }) => [path, near])).toEqual(found)
})

test("reports every argument of a tool without arguments, and none for an open schema", () => {
  expect(unknownKeys(toJsonSchema(z.object({})), { a: 1 })).toEqual([
    { path: "a", near: undefined, known: [] },
  ])
  expect(unknownKeys({ type: "object", properties: { a: {} } }, { b: 1 })).toEqual([])
  expect(unknownKeys({}, { constructor: 1 })).toEqual([])
})
