import { expect, test } from "vitest"
import { isStrictSchema, readAnswerSchema } from "../../src/model/answer-schema.ts"
import { UsageError } from "../../src/util/errors.ts"

const point = {
  type: "object",
  properties: { x: { type: "integer" }, y: { type: "integer", default: 0 } },
  required: ["x"],
}

test("sends an object schema unchanged, fills in defaults and keeps other keys", () => {
  const { sent, wrapped, checker } = readAnswerSchema(point)
  expect(wrapped).toBe(false)
  expect(sent).toBe(point)
  expect(checker.parse({ x: 1, z: "more" })).toEqual({ x: 1, y: 0, z: "more" })
  expect(checker.safeParse({ x: 1.5 }).success).toBe(false)
})

test.each([
  ["$defs", { $defs: { point }, type: "array", items: { $ref: "#/$defs/point" } }],
  ["definitions", { definitions: { point }, type: "array", items: { $ref: "#/definitions/point" } }],
])("any other schema is the `answer` of an object, and its %s stay where references point", (key, schema) => {
  const { sent, wrapped, checker } = readAnswerSchema(schema)
  expect(wrapped).toBe(true)
  expect(sent).toEqual({
    type: "object",
    properties: { answer: { type: "array", items: schema.items } },
    required: ["answer"],
    additionalProperties: false,
    [key]: { point },
  })
  expect(checker.safeParse([{ x: 1 }]).success).toBe(true)
  expect(checker.safeParse([{ y: 1 }]).success).toBe(false)
})

test.each([
  [{ type: "strnig" }, /Unsupported type/],
  [{ type: "object", not: { type: "string" } }, /not is not supported/],
  [{ type: "array", items: { $ref: "#/$defs/none" } }, /none/],
  [[], /expected an object/],
  [null, /expected an object/],
])("rejects %j with a reason", (schema, words) => {
  expect(() => readAnswerSchema(schema)).toThrow(UsageError)
  expect(() => readAnswerSchema(schema)).toThrow(words)
})

test("is strict only for closed objects with all keys required", () => {
  const closed = { type: "object", properties: { a: {} }, required: ["a"], additionalProperties: false }
  expect(isStrictSchema(closed)).toBe(true)
  expect(isStrictSchema({ ...closed, properties: { a: { type: "array", items: closed } } })).toBe(true)
  expect(isStrictSchema({ ...closed, properties: { a: { type: "array", items: point } } })).toBe(false)
  expect(isStrictSchema({ ...closed, required: [] })).toBe(false)
  expect(isStrictSchema({ type: "object" })).toBe(false)
})
