import { expect, test } from "vitest"
import * as z from "zod"
import type { ProviderFamily } from "../../src/model/model.ts"
import { quirksOf } from "../../src/model/quirks.ts"
import { transformSchema } from "../../src/model/schema-transforms.ts"
import { toJsonSchema } from "../../src/util/json-schema.ts"

test("returns the input schema, closed and with descriptions", () => {
  const schema = z.object({
    path: z.string().min(1).describe("Where"),
    limit: z.coerce.number().int().min(1).optional().describe("How many"),
    mode: z.enum(["a", "b"]).default("a"),
    count: z.number().int(),
    inner: z.array(z.object({ x: z.boolean() })),
    map: z.record(z.string(), z.number()),
    open: z.looseObject({}),
  })
  expect(toJsonSchema(schema)).toEqual({
    type: "object",
    properties: {
      path: { type: "string", minLength: 1, description: "Where" },
      limit: { type: "integer", minimum: 1, description: "How many" },
      mode: { type: "string", enum: ["a", "b"], default: "a" },
      count: { type: "integer" },
      inner: {
        type: "array",
        items: {
          type: "object",
          properties: { x: { type: "boolean" } },
          required: ["x"],
          additionalProperties: false,
        },
      },
      map: { type: "object", propertyNames: { type: "string" }, additionalProperties: { type: "number" } },
      open: { type: "object", properties: {}, additionalProperties: {} },
    },
    required: ["path", "count", "inner", "map", "open"],
    additionalProperties: false,
  })
})

test("does not throw for types without a JSON Schema", () => {
  expect(toJsonSchema(z.object({ when: z.date(), f: z.custom<() => void>() }))).toMatchObject({
    properties: { when: {}, f: {} },
  })
})

test("adds the object type to a copy of an external schema", () => {
  const given = Object.freeze({ anyOf: [{ required: ["a"] }] })
  expect(transformSchema(given, quirksOf(undefined).schema ?? [])).toEqual({
    ...given,
    type: "object",
    properties: {},
  })
  const whole = toJsonSchema(z.object({ a: z.string() }))
  for (const family of ["openai-compatible", "openai", "anthropic", "google", "other"] as const) {
    expect(transformSchema(whole, quirksOf(model(family)).schema ?? [])).toEqual(whole)
  }
})

function model(family: ProviderFamily) {
  return { ref: { providerID: "p", modelID: "m" }, name: "m", toolCall: true, limit: {}, family }
}
