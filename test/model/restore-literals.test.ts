import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as z from "zod"
import type { ModelInfo } from "../../src/model/model.ts"
import { quirksOf } from "../../src/model/quirks.ts"
import { restoreLiterals } from "../../src/model/restore-literals.ts"
import {
  asObject,
  bareReferences,
  constAsEnum,
  honestRequired,
  type SchemaTransform,
  singleTypes,
  textEnums,
  transformSchema,
  tuplesAsLists,
  typedItems,
  withoutTopUnion,
} from "../../src/model/schema-transforms.ts"
import { type JsonSchema, toJsonSchema } from "../../src/util/json-schema.ts"
import { runs } from "../runs.ts"

/** A schema, a value that is valid for it, and the same value with all its literals as texts. */
interface Sample {
  schema: z.ZodType
  value: unknown
  text: unknown
}

const same = (schema: z.ZodType, value: unknown): Sample => ({ schema, value, text: value })

const literal = fc
  .uniqueArray(
    fc.oneof(
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.string({ minLength: 1 }),
    ),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  .chain((values) =>
    fc.record({ value: fc.constantFrom(...values), union: fc.boolean(), values: fc.constant(values) }),
  )
  .map(({ values, value, union }): Sample => {
    const options = values.map((each) => z.literal(each))
    return { schema: union ? z.union(options) : z.literal(values), value, text: String(value) }
  })

const leaf = fc.oneof(
  { weight: 4, arbitrary: literal },
  { weight: 1, arbitrary: fc.string().map((value) => same(z.string(), value)) },
  { weight: 1, arbitrary: fc.integer().map((value) => same(z.int(), value)) },
  { weight: 1, arbitrary: fc.boolean().map((value) => same(z.boolean(), value)) },
  { weight: 1, arbitrary: fc.constant(same(z.null(), null)) },
  { weight: 1, arbitrary: fc.constant(same(z.array(z.any()), [])) },
)

const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { maxDepth: 3 },
    leaf,
    tie("sample").map(({ schema, value, text }) => ({ schema: z.nullable(schema), value, text })),
    tie("sample").map(({ schema, value, text }) => ({
      schema: z.array(schema),
      value: [value, value],
      text: [text, text],
    })),
    fc.tuple(tie("sample"), tie("sample"), fc.boolean()).map(([a, b, rest]) => ({
      schema: rest ? z.tuple([a.schema], b.schema) : z.tuple([a.schema, b.schema]),
      value: [a.value, b.value],
      text: [a.text, b.text],
    })),
    fc.tuple(tie("sample"), tie("sample")).map(([a, b]) => ({
      schema: z.object({ a: a.schema, b: b.schema.optional() }),
      value: { a: a.value, b: b.value },
      text: { a: a.text, b: b.text },
    })),
    fc.tuple(tie("sample"), tie("sample")).map(([a, b]) => ({
      schema: z.union([
        z.object({ kind: z.literal(1), a: a.schema }),
        z.object({ kind: z.literal(2), a: b.schema }),
      ]),
      value: { kind: 2, a: b.value },
      text: { kind: "2", a: b.text },
    })),
  ),
}))

const model = (modelID: string): ModelInfo => ({
  ref: { providerID: "p", modelID },
  name: modelID,
  toolCall: true,
  limit: {},
  family: "openai-compatible",
})

const families: [string, readonly SchemaTransform[]][] = [
  ...["gemini-2.5-pro", "kimi-k2", "gpt-5", "claude-sonnet-4.5"].map(
    (id): [string, readonly SchemaTransform[]] => [id, quirksOf(model(id)).schema ?? []],
  ),
  ["asObject", [asObject]],
  ["withoutTopUnion", [withoutTopUnion]],
  ["constAsEnum", [constAsEnum]],
  ["typedItems", [typedItems]],
  ["tuplesAsLists", [tuplesAsLists]],
  ["bareReferences", [bareReferences]],
  ["textEnums, after constAsEnum", [constAsEnum, textEnums]],
  ["singleTypes", [singleTypes]],
  ["honestRequired", [honestRequired]],
]

/** Returns true if the schema accepts the value, with `nullable` as OpenAPI defines it. */
function accepts(schema: JsonSchema, value: unknown): boolean {
  const json = JSON.parse(JSON.stringify(withNull(schema)))
  return z.fromJSONSchema(json, { defaultTarget: "draft-7" }).safeParse(value).success
}

function withNull(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withNull)
  if (typeof schema !== "object" || schema === null) return schema
  const { nullable, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, withNull(value)]),
  )
  return nullable === true ? { anyOf: [rest, { type: "null" }] } : rest
}

describe("every transform keeps a valid call possible", () => {
  test.each(families)("%s", (_, list) => {
    fc.assert(
      fc.property(sample, ({ schema, value, text }) => {
        const original = z.object({ x: schema })
        const json = toJsonSchema(original)
        const transformed = transformSchema(json, list)
        const valid = [{ x: value }, { x: text }].filter(
          (args) =>
            accepts(transformed, args) &&
            original.safeParse(restoreLiterals(json, structuredClone(args))).success,
        )
        expect(valid.length, JSON.stringify({ json, transformed, value, text })).toBeGreaterThan(0)
      }),
      { numRuns: runs(60) },
    )
  })
})

describe("restoreLiterals", () => {
  test("does not change valid arguments", () => {
    fc.assert(
      fc.property(sample, ({ schema, value }) => {
        const args = { x: value }
        expect(restoreLiterals(toJsonSchema(z.object({ x: schema })), args)).toBe(args)
      }),
    )
  })

  test.each<[string, JsonSchema, unknown, unknown]>([
    ["a number", { enum: [1, 2] }, "2", 2],
    ["a boolean constant", { type: "boolean", const: true }, "true", true],
    ["null", { enum: [null] }, "null", null],
    ["a text that is also a literal", { enum: [1, "1"] }, "1", "1"],
    ["a text that another alternative accepts", { anyOf: [{ enum: [1] }, { type: "string" }] }, "1", "1"],
    ["a text that is no literal", { enum: [1, 2] }, "3", "3"],
    ["a value behind a reference", { $ref: "#/$defs/level" }, "2", 2],
    ["a value of a map", { type: "object", additionalProperties: { enum: [7] } }, { k: "7" }, { k: 7 }],
  ])("restores %s", (_, schema, given, wanted) => {
    const root = { type: "object", properties: { x: schema }, $defs: { level: { enum: [1, 2] } } }
    expect(restoreLiterals(root, { x: given })).toEqual({ x: wanted })
  })

  test("ends for recursive schemas, deep arguments and endless references", () => {
    const node = {
      type: "object",
      properties: { child: { $ref: "#" }, level: { enum: [1] } },
      required: ["level"],
    }
    let deep: Record<string, unknown> = {}
    for (let depth = 0; depth < 5_000; depth += 1) deep = { child: deep, level: "1" }
    expect(() => restoreLiterals({ anyOf: [node, { ...node, title: "t" }] }, deep)).not.toThrow()
    expect(restoreLiterals({ $ref: "#" }, { a: 1 })).toEqual({ a: 1 })
    expect(restoreLiterals({ enum: 7, properties: [], required: "x", anyOf: {} }, { a: 1 })).toEqual({ a: 1 })
  })
})
