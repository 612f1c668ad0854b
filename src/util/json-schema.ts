import * as z from "zod"

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
