import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  bareReferences,
  constAsEnum,
  honestRequired,
  inlineReferences,
  type SchemaTransform,
  singleTypes,
  textEnums,
  tuplesAsLists,
  typedEnums,
  typedItems,
  typesInBranches,
  withoutTextLengths,
  withoutTextRules,
  withoutTopUnion,
} from "../../src/model/schema-transforms.ts"

/** The schema deep within another. */
const within = (schema: object) => ({
  type: "object",
  properties: { enum: { type: "array", items: { anyOf: [schema, { type: "null" }] } } },
})

describe("schema transforms", () => {
  test.each<[string, SchemaTransform, object, object]>([
    ["const is an enum of one", constAsEnum, { const: 3, title: "t" }, { enum: [3], title: "t" }],
    [
      "numbers to choose from are texts",
      textEnums,
      { type: "integer", enum: [1, 2] },
      { type: "string", enum: ["1", "2"] },
    ],
    [
      "so are booleans and null",
      textEnums,
      { type: ["boolean", "null"], enum: [true, null] },
      { type: "string", enum: ["true"], nullable: true },
    ],
    [
      "several types keep the keywords of each type",
      singleTypes,
      { type: ["array", "object"], items: { type: "number" }, required: ["a"], title: "t" },
      {
        anyOf: [
          { type: "array", items: { type: "number" } },
          { type: "object", required: ["a"] },
        ],
        title: "t",
      },
    ],
    [
      "an enum with null has a branch for null",
      typedEnums,
      { type: ["string", "null"], enum: ["a", null], title: "t" },
      { title: "t", anyOf: [{ type: "string", enum: ["a"] }, { type: "null" }] },
    ],
    [
      "an enum has the type of its literals",
      typedEnums,
      { enum: ["a", "b"] },
      { type: "string", enum: ["a", "b"] },
    ],
    [
      "a nullable enum has a branch for null",
      typedEnums,
      { type: "string", nullable: true, enum: ["a", null] },
      { anyOf: [{ type: "string", enum: ["a"] }, { type: "null" }] },
    ],
    [
      "an enum of several types has a branch for each",
      typedEnums,
      { enum: [1, "a", 2] },
      {
        anyOf: [
          { type: "number", enum: [1, 2] },
          { type: "string", enum: ["a"] },
        ],
      },
    ],
    [
      "an enum loses literals of another type",
      typedEnums,
      { type: "string", enum: ["a", null] },
      { type: "string", enum: ["a"] },
    ],
    [
      "the type next to anyOf moves into the branches",
      typesInBranches,
      { type: "string", description: "d", anyOf: [{ minLength: 1 }, { type: "null" }] },
      { description: "d", anyOf: [{ type: "string", minLength: 1 }, { type: "null" }] },
    ],
    [
      "the keys next to anyOf move into the branches",
      typesInBranches,
      {
        type: "object",
        properties: { a: {}, b: {} },
        required: ["c"],
        anyOf: [{ required: ["a"] }, { properties: { d: {} } }],
      },
      {
        anyOf: [
          { type: "object", properties: { a: {}, b: {} }, required: ["c", "a"] },
          { type: "object", properties: { a: {}, b: {}, d: {} }, required: ["c"] },
        ],
      },
    ],
    [
      "limits of lengths are removed",
      withoutTextLengths,
      { type: "string", minLength: 1, maxLength: 9, pattern: "a" },
      { type: "string", pattern: "a" },
    ],
    [
      "everything that grammars reject is removed",
      withoutTextRules,
      { type: "array", maxItems: 5, items: { type: "string", format: "uri", pattern: "a", maxLength: 9 } },
      { type: "array", items: { type: "string" } },
    ],
    ["a null alone stays a null", singleTypes, { type: ["null"] }, { type: "null" }],
    [
      "a reference keeps its definitions",
      bareReferences,
      { $ref: "#/$defs/a", title: "t", $defs: { a: {} } },
      { $ref: "#/$defs/a", $defs: { a: {} } },
    ],
    [
      "an object that may be null keeps its keys",
      honestRequired,
      { type: ["object", "null"], properties: { a: {} }, required: ["a"] },
      { type: ["object", "null"], properties: { a: {} }, required: ["a"] },
    ],
    [
      "a null beside a type is nullable",
      singleTypes,
      { type: ["string", "null"] },
      { type: "string", nullable: true },
    ],
    [
      "several types are alternatives",
      singleTypes,
      { type: ["string", "number"], title: "t" },
      { anyOf: [{ type: "string" }, { type: "number" }], title: "t" },
    ],
    ["a list says of what", typedItems, { type: "array" }, { type: "array", items: { type: "string" } }],
    [
      "a tuple is a list of all its kinds",
      tuplesAsLists,
      { type: "array", items: [{ type: "string" }, { type: "number" }], additionalItems: { type: "null" } },
      { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }, { type: "null" }] } },
    ],
    [
      "so is one by prefixItems",
      tuplesAsLists,
      { type: "array", prefixItems: [{ type: "number" }], items: false },
      { type: "array", items: { type: "number" }, maxItems: 1 },
    ],
    ["a reference stands alone", bareReferences, { $ref: "#/$defs/a", title: "t" }, { $ref: "#/$defs/a" }],
    [
      "only keys that are there are needed",
      honestRequired,
      { type: "object", properties: { a: {} }, required: ["a", "b"] },
      { type: "object", properties: { a: {} }, required: ["a"] },
    ],
    [
      "what is no object has no keys",
      honestRequired,
      { type: "string", properties: { a: {} }, required: ["a"] },
      { type: "string" },
    ],
  ])("%s", (_, transform, given, wanted) => {
    expect(transform({ ...given })).toEqual(wanted)
    expect(transform(within(given))).toEqual(transform(within(wanted)))
    expect(transform(within(given))).toEqual(within(wanted))
  })

  test("do not change their input and are idempotent", () => {
    const transforms = [constAsEnum, textEnums, typedItems, tuplesAsLists, bareReferences, honestRequired]
    const leaf = fc.constantFrom<object>(
      { const: 1 },
      { type: "integer", enum: [1] },
      { type: "array" },
      { $ref: "#/$defs/a", title: "t" },
      { type: "array", items: [{ const: 1 }] },
      { type: "object", required: ["a"] },
    )
    fc.assert(
      fc.property(leaf, leaf, fc.constantFrom(...transforms), (a, b, transform) => {
        const schema = { type: "object", properties: { a, b: within(b) } }
        const before = structuredClone(schema)
        const once = transform(schema)
        expect(schema).toEqual(before)
        expect(transform(once)).toEqual(once)
      }),
    )
  })
})

test("replaces a union at the top by one object that accepts all branches", () => {
  expect(
    withoutTopUnion({
      description: "d",
      anyOf: [
        { type: "object", properties: { a: {}, kind: {} }, required: ["a", "kind"] },
        { type: "object", properties: { b: {}, kind: {} }, required: ["kind"] },
      ],
    }),
  ).toEqual({
    description: "d",
    type: "object",
    properties: { a: {}, b: {}, kind: {} },
    required: ["kind"],
  })
  expect(
    withoutTopUnion({
      oneOf: [
        { properties: { kind: { const: "a" } }, required: ["kind"] },
        { properties: { kind: { const: "b" } }, required: ["kind"] },
      ],
    }),
  ).toEqual({
    type: "object",
    properties: { kind: { anyOf: [{ const: "a" }, { const: "b" }] } },
    required: ["kind"],
  })
  expect(
    withoutTopUnion({
      properties: { c: {} },
      required: ["c"],
      allOf: [{ properties: { a: {} }, required: ["a"] }, { properties: { b: {} } }],
    }),
  ).toEqual({ type: "object", properties: { a: {}, b: {}, c: {} }, required: ["c", "a"] })
  const plain = { type: "object", properties: { a: { anyOf: [{}, {}] } } }
  expect(withoutTopUnion(plain)).toBe(plain)
})

describe("inlineReferences", () => {
  test("replaces references, and keeps the keywords next to them", () => {
    expect(
      inlineReferences({
        type: "object",
        properties: { a: { $ref: "#/$defs/a", description: "mine" }, list: { items: { $ref: "#/$defs/a" } } },
        $defs: { a: { description: "its", $ref: "#/definitions/b" } },
        definitions: { b: { type: "string" } },
      }),
    ).toEqual({
      type: "object",
      properties: {
        a: { type: "string", description: "mine" },
        list: { items: { type: "string", description: "its" } },
      },
    })
  })

  test("ends for recursive and for multiplying references", () => {
    const tree = { type: "object", properties: { child: { $ref: "#/$defs/tree" } } }
    expect(inlineReferences({ properties: { root: { $ref: "#/$defs/tree" } }, $defs: { tree } })).toEqual({
      properties: { root: { type: "object", properties: { child: { type: "object" } } } },
    })
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` }
        return [`d${index}`, { type: "object", properties: { a: next, b: next } }]
      }),
    )
    const inlined = inlineReferences({ properties: { x: { $ref: "#/$defs/d0" } }, $defs })
    expect(JSON.stringify(inlined).length).toBeLessThan(500_000)
    expect(JSON.stringify(inlined)).not.toContain("$ref")
  })

  test("returns a schema without references unchanged", () => {
    const schema = { type: "object", properties: { $ref: { type: "string" } } }
    expect(inlineReferences(schema)).toBe(schema)
  })
})
