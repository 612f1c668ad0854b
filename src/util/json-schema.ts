import * as z from "zod"
import { canonicalJson, isRecord } from "./json.ts"

/** A JSON Schema (draft 7) that describes a tool to a model. */
export type JsonSchema = Record<string, unknown>

/**
 * Converts the input side of a Zod schema to JSON Schema. Fields with a default are optional. Objects reject additional
 * keys unless the schema allows them explicitly. Types without a JSON form accept anything.
 */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const converted = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === "object") jsonSchema.additionalProperties ??= false
      // Every integer has these limits. They cost tokens in each request.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  const { $schema: _, ...rest } = converted
  return rest
}

/** Returns the properties of an object schema, by key. Invalid `properties` count as none. */
export function propertiesOf(schema: JsonSchema): Record<string, unknown> {
  return isRecord(schema.properties) ? schema.properties : {}
}

/** Returns the required keys of an object schema. Invalid `required` counts as none. */
export function requiredOf(schema: JsonSchema | undefined): string[] {
  return Array.isArray(schema?.required)
    ? schema.required.filter((key): key is string => typeof key === "string")
    : []
}

/** Returns the schema of a local reference such as `#/$defs/node`, or undefined. */
export function referenced(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith("#")) return undefined
  const keys = reference.slice(1).split("/").slice(1)
  return keys
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), root)
}

/** Returns the string that stands for a literal in an `enum` of strings. */
export function literalText(literal: unknown): string {
  return typeof literal === "string" ? literal : canonicalJson(literal)
}
