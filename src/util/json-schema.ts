import * as z from "zod"

/** A JSON Schema of draft 7, as tools are described to a model. */
export type JsonSchema = Record<string, unknown>

/**
 * What a model has to write to satisfy a tool's schema: the input side, so that fields with a default are optional.
 * Objects close themselves against further keys unless they say otherwise. What JSON cannot say becomes "anything".
 */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const converted = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === "object") jsonSchema.additionalProperties ??= false
      // What every integer has; it says nothing and costs tokens in each request.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  const { $schema: _, ...rest } = converted
  return rest
}
