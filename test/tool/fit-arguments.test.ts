import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as z from "zod"
import type { ModelInfo } from "../../src/model/model.ts"
import { quirksOf } from "../../src/model/quirks.ts"
import {
  asObject,
  bareReferences,
  constAsEnum,
  honestRequired,
  inlineReferences,
  type SchemaTransform,
  singleTypes,
  textEnums,
  transformSchema,
  tuplesAsLists,
  typedEnums,
  typedItems,
  typesInBranches,
  withoutTextRules,
  withoutTopUnion,
} from "../../src/model/schema-transforms.ts"
import { fitArguments } from "../../src/tool/fit-arguments.ts"
import { correctArguments } from "../../src/tool/validate.ts"
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
  ["inlineReferences", [inlineReferences]],
  ["typedEnums", [typedEnums]],
  ["typesInBranches", [typesInBranches]],
  ["withoutTextRules", [withoutTextRules]],
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
            original.safeParse(fitArguments(json, structuredClone(args)).args).success,
        )
        expect(valid.length, JSON.stringify({ json, transformed, value, text })).toBeGreaterThan(0)
      }),
      { numRuns: runs(60) },
    )
  })
})

/** A schema, a valid value, and the same value in a form that models use by mistake. */
interface Bent {
  schema: z.ZodType
  value: unknown
  bent: unknown
}

const asText = (value: unknown) => JSON.stringify(value)

const { bent } = fc.letrec<{ bent: Bent }>((tie) => ({
  bent: fc.oneof(
    { maxDepth: 4 },
    fc.string().map((value): Bent => ({ schema: z.string(), value, bent: value })),
    fc
      .tuple(fc.maxSafeInteger(), fc.boolean())
      .map(([value, text]): Bent => ({ schema: z.int(), value, bent: text ? asText(value) : value })),
    fc.tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()).map(([given, text]): Bent => {
      const value = Number.isInteger(given) ? 0.5 : given
      return { schema: z.number(), value, bent: text ? asText(value) : value }
    }),
    fc
      .tuple(fc.boolean(), fc.constantFrom("true", "True", " TRUE"))
      .map(([value, text]): Bent => ({ schema: z.boolean(), value, bent: value ? text : "false" })),
    fc.tuple(tie("bent"), fc.nat(3), fc.boolean()).map(
      ([item, count, text]): Bent => ({
        schema: z.array(item.schema),
        value: Array(count).fill(item.value),
        bent: text ? asText(Array(count).fill(item.bent)) : Array(count).fill(item.bent),
      }),
    ),
    fc.integer().map((value): Bent => ({ schema: z.array(z.int()), value: [value], bent: value })),
    fc
      .tuple(tie("bent"), tie("bent"), fc.constantFrom(null, "", "null"), fc.boolean())
      .map(([a, b, empty, text]): Bent => {
        const given = { first: a.bent, second_key: b.bent, unused: empty, unusedList: empty }
        return {
          schema: z.object({
            first: a.schema,
            secondKey: b.schema,
            unused: z.number().optional(),
            unusedList: z.array(z.string()).optional(),
          }),
          value: { first: a.value, secondKey: b.value },
          bent: text ? asText(given) : given,
        }
      }),
  ),
}))

const object = (properties: JsonSchema, rest: JsonSchema = {}): JsonSchema => ({
  type: "object",
  properties,
  additionalProperties: false,
  ...rest,
})
const text = { type: "string" }
const number = { type: "number" }

describe("fitArguments", () => {
  test("does not change valid arguments", () => {
    fc.assert(
      fc.property(sample, ({ schema, value }) => {
        const args = { x: value }
        expect(fitArguments(toJsonSchema(z.object({ x: schema })), args)).toEqual({ args, changes: [] })
        expect(fitArguments(toJsonSchema(z.object({ x: schema })), args).args).toBe(args)
      }),
    )
  })

  test("does not change a valid value beside an invalid one", () => {
    fc.assert(
      fc.property(sample, ({ schema, value }) => {
        const json = toJsonSchema(z.object({ x: schema, n: z.int() }))
        expect(fitArguments(json, { x: value, n: "1" }).args).toEqual({ x: value, n: 1 })
      }),
    )
  })

  test("restores values in the wrong form, at every depth", () => {
    fc.assert(
      fc.property(bent, ({ schema, value, bent: given }) => {
        const json = toJsonSchema(z.object({ x: schema }))
        expect(fitArguments(json, { x: given }).args, JSON.stringify({ json, given })).toEqual({ x: value })
      }),
      { numRuns: runs(300) },
    )
  })

  test("never throws, and keeps arguments that fit in no way", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue()), (schema, args) => {
        const odd = { type: "object", properties: { a: schema }, required: schema, anyOf: schema }
        expect(() => fitArguments(odd as JsonSchema, { ...args, a: "1" })).not.toThrow()
      }),
    )
  })

  test.each<[string, JsonSchema, unknown, unknown]>([
    ["a number in an enum", { enum: [1, 2] }, "2", 2],
    ["a boolean constant", { type: "boolean", const: true }, "true", true],
    ["null in an enum", { enum: [null] }, "null", null],
    ["a literal behind a reference", { $ref: "#/$defs/level" }, "2", 2],
    ["a value of a map", { type: "object", additionalProperties: { enum: [7] } }, { k: "7" }, { k: 7 }],
    ["a number", number, "5", 5],
    ["a number with spaces", number, " -0.5e1\n", -5],
    ["a boolean as Python writes it", { type: "boolean" }, "False", false],
    ["a list", { type: "array", items: number }, '["1", 2]', [1, 2]],
    ["an object", object({ a: number }), '{"a":"1"}', { a: 1 }],
    ["a list that was encoded twice", { type: "array" }, '"[1]"', [1]],
    ["a single item", { type: "array", items: text }, "a", ["a"]],
    ["a single number for a list of numbers", { type: "array", items: number }, "5", [5]],
    ["a single object", { type: "array", items: object({ a: number }) }, { a: "1" }, [{ a: 1 }]],
    ["a glob for a list", { type: "array", items: text }, "[ab]*.ts", ["[ab]*.ts"]],
    ["one of several types", { type: ["integer", "null"] }, "5", 5],
    ["a number in a union", { anyOf: [number, { type: "boolean" }] }, "5", 5],
    ["a boolean in a union", { anyOf: [number, { type: "boolean" }] }, "true", true],
    [
      "an object instead of a list",
      { anyOf: [{ type: "array", items: text }, object({ a: number })] },
      '{"a":1}',
      { a: 1 },
    ],
    [
      "the branch that its literal selects",
      { oneOf: [object({ kind: { const: "a" }, v: text }), object({ kind: { const: "b" }, v: number })] },
      { kind: "b", v: "5" },
      { kind: "b", v: 5 },
    ],
    ["a part of all schemas", { allOf: [object({ a: number }), { required: ["a"] }] }, { a: "1" }, { a: 1 }],
  ])("reads %s", (_, schema, given, wanted) => {
    const root = {
      type: "object",
      properties: { x: schema },
      $defs: { level: { enum: [1, 2] } },
      required: ["x"],
    }
    expect(fitArguments(root, { x: given }).args).toEqual({ x: wanted })
  })

  test.each<[string, JsonSchema, unknown]>([
    ["a text that is also a literal", { enum: [1, "1"] }, "1"],
    ["a text that another branch accepts", { anyOf: [{ enum: [1] }, text] }, "1"],
    ["a text that one of the types accepts", { type: ["number", "string"] }, "5"],
    ["null where null is a type", { type: ["string", "null"] }, null],
    ["null that is nullable", { type: "string", nullable: true }, null],
    ["null that a branch accepts", { anyOf: [text, { type: "null" }] }, null],
    ["an empty text", text, ""],
    ["a text that is JSON", text, '{"a":1}'],
    ["a text in a list of texts", { type: "array", items: text }, ["[1]", "", "null"]],
    ["a value without a schema", {}, "5"],
    ["a text that is no literal", { enum: [1, 2] }, "3"],
    ["a text that is no number", number, "5 files"],
    ["a number with leading zeros", number, "007"],
    ["a fraction for an integer", { type: "integer" }, "5.5"],
    ["an integer that would be rounded", { type: "integer" }, "12345678901234567890"],
    ["a number for a text", text, 5],
    ["a number for a boolean", { type: "boolean" }, 1],
    ["another word for a boolean", { type: "boolean" }, "yes"],
    ["a text that begins like a list", { type: "array", items: text }, "['a', 'b']"],
    ["a list in a list", { type: "array", items: { type: "array", items: text } }, ["a"].map(Number)],
    ["null for a list", { type: "array" }, null],
    ["a required empty text", { type: "array", items: text }, ""],
    [
      "a text for two different branches",
      { anyOf: [object({ a: number }), object({ b: number })] },
      '{"a":"1","b":"2"}',
    ],
  ])("keeps %s", (_, schema, given) => {
    const args = { x: given }
    expect(fitArguments({ type: "object", properties: { x: schema }, required: ["x"] }, args)).toEqual({
      args,
      changes: [],
    })
  })

  const optional = object({
    count: number,
    list: { type: "array", items: text },
    level: { enum: ["low", "high"] },
    url: { type: "string", format: "uri" },
    date: { type: "string", pattern: "^\\d+$" },
    name: { type: "string", minLength: 1 },
    free: text,
    maybe: { type: ["string", "null"] },
  })
  test.each([
    [null, { maybe: null }],
    ["", { free: "", maybe: "" }],
    ["null", { url: "null", date: "null", name: "null", free: "null", maybe: "null" }],
  ])("leaves out optional fields with %j, unless the schema accepts it", (empty, left) => {
    const keys = Object.keys(optional.properties as object)
    const args = Object.fromEntries(keys.map((key) => [key, empty]))
    expect(fitArguments({ properties: { x: optional } }, { x: args }).args).toEqual({ x: left })
  })

  const edit = object(
    { filePath: text, oldString: text, replaceAll: { type: "boolean" } },
    { required: ["filePath", "oldString"] },
  )
  test.each<[JsonSchema, Record<string, unknown>, Record<string, unknown>]>([
    [
      edit,
      { file_path: "a", old_string: "b", replace_all: "true" },
      { filePath: "a", oldString: "b", replaceAll: true },
    ],
    [edit, { path: "a", oldString: "b" }, { filePath: "a", oldString: "b" }],
    [edit, { file: "a", oldString: "b" }, { filePath: "a", oldString: "b" }],
    [edit, { filePath: "a", old_str: "b" }, { filePath: "a", oldString: "b" }],
    [object({ command: text, workdir: text }, { required: ["command"] }), { cmd: "ls" }, { command: "ls" }],
    [object({ content: text }, { required: ["content"] }), { contents: "x" }, { content: "x" }],
    [object({ ids: { type: "array", items: number } }, { required: ["ids"] }), { id: "5" }, { ids: [5] }],
    [
      { ...edit, additionalProperties: {} },
      { path: "a", oldString: "b", more: 1 },
      { filePath: "a", oldString: "b", more: 1 },
    ],
  ])("reads keys of %j in %j", (schema, given, wanted) => {
    expect(fitArguments(schema, given).args).toEqual(wanted)
    const nested = { properties: { list: { type: "array", items: schema } } }
    expect(fitArguments(nested, { list: [given] }).args).toEqual({ list: [wanted] })
  })

  test.each<[string, JsonSchema, Record<string, unknown>]>([
    ["two keys are missing", edit, { path: "a" }],
    ["two keys are aliases", edit, { path: "a", file: "b", oldString: "c" }],
    ["two spellings are given", edit, { file_path: "a", FilePath: "b", oldString: "c" }],
    ["the key is no alias", edit, { target: "a", oldString: "b" }],
    ["no key is missing", edit, { filePath: "a", oldString: "b", path: "c" }],
    ["the value is of another type", edit, { path: 5, oldString: "b" }],
    [
      "the key may mean two others",
      object({ path: text, pattern: text }, { required: ["pattern"] }),
      { path_pattern: "a" },
    ],
    ["the schema accepts the key", object({ a_b: text }, { additionalProperties: true }), { "a-b": "x" }],
    [
      "a pattern may accept the key",
      { ...edit, patternProperties: { "^p": text } },
      { path: "a", oldString: "b" },
    ],
  ])("keeps keys if %s", (_, schema, given) => {
    expect(fitArguments(schema, given)).toEqual({ args: given, changes: [] })
  })

  test("describes the changes", () => {
    const given = { file: "a", offset: "5", limit: null, tags: "x", kind: "2" }
    const schema = object(
      { filePath: text, offset: number, limit: number, tags: { type: "array" }, kind: { enum: [2] } },
      { required: ["filePath"] },
    )
    expect(fitArguments(schema, given)).toEqual({
      args: { filePath: "a", offset: 5, tags: ["x"], kind: 2 },
      changes: [
        '"file" was read as "filePath"',
        '"offset" was read as a number',
        '"limit" was empty and is left out',
        '"tags" was read as a list',
        '"kind" was read as a number',
      ],
    })
  })

  test("ends for recursive schemas, deep arguments and endless references", () => {
    const node = {
      type: "object",
      properties: { child: { $ref: "#" }, level: { enum: [1] } },
      required: ["level"],
    }
    let deep: Record<string, unknown> = {}
    for (let depth = 0; depth < 5_000; depth += 1) deep = { child: deep, level: "1" }
    expect(() => fitArguments({ anyOf: [node, { ...node, title: "t" }] }, deep)).not.toThrow()
    expect(fitArguments({ $ref: "#" }, { a: 1 }).args).toEqual({ a: 1 })
    expect(fitArguments({ enum: 7, properties: [], required: "x", anyOf: {} }, { a: 1 }).args).toEqual({
      a: 1,
    })
    const brackets = "[".repeat(10_000) + "]".repeat(10_000)
    expect(fitArguments({ properties: { x: { type: "array" } } }, { x: brackets }).args).toEqual({
      x: brackets,
    })
  })
})

describe("correctArguments", () => {
  const correct = (parameters: z.ZodType, given: Record<string, unknown>) =>
    correctArguments(
      {
        id: "x",
        definition: { description: "", parameters, execute: () => Promise.reject(new Error("not called")) },
        schema: toJsonSchema(parameters),
      },
      given,
    )

  test("keeps a value that the tool accepts in more forms than its JSON Schema, beside one that it rejects", async () => {
    const parameters = z.object({
      tags: z.preprocess(
        (value) => (typeof value === "string" ? value.split(",") : value),
        z.array(z.string()),
      ),
      sum: z.coerce.number(),
      count: z.number(),
    })
    expect(await correct(parameters, { tags: "a,b", sum: "5", count: "6" })).toMatchObject({
      input: { tags: "a,b", sum: "5", count: 6 },
    })
    const given = { tags: "a,b", sum: "5", count: 6 }
    const { input, valid } = await correct(parameters, given)
    expect(input).toBe(given)
    expect(valid).toEqual({ data: { tags: ["a", "b"], sum: 5, count: 6 } })
  })

  test("corrects the other fields of an object whose kind was a text", async () => {
    const parameters = z.object({
      x: z.discriminatedUnion("kind", [
        z.object({ kind: z.literal(1), size: z.number() }),
        z.object({ kind: z.literal(2), list: z.array(z.string()) }),
      ]),
    })
    expect((await correct(parameters, { x: { kind: "1", size: "5" } })).input).toEqual({
      x: { kind: 1, size: 5 },
    })
    expect((await correct(parameters, { x: { kind: "2", list: "a" } })).input).toEqual({
      x: { kind: 2, list: ["a"] },
    })
  })

  test("leaves arguments to validation if the tool's schema throws", async () => {
    const parameters = z.object({ n: z.number() }).refine(() => {
      throw new Error("broken")
    })
    expect((await correct(parameters, { n: 1 })).input).toEqual({ n: 1 })
  })
})
