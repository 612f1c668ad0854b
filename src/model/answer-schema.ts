import * as z from "zod"
import { errorMessage, UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"

/** The JSON Schema for an answer, as the caller passed it and as it is sent to the server. */
export interface AnswerSchema {
  /** Schema that the caller passed. */
  given: JsonSchema
  /**
   * Schema for the server. Because servers require an object at the top level, any other schema becomes the property
   * `answer` of an object.
   */
  sent: JsonSchema
  /** Whether `sent` wraps `given` as the property `answer`. */
  wrapped: boolean
  /** Checks an answer against `given` and fills in defaults. */
  checker: z.ZodType
}

/**
 * Reads a JSON Schema. Throws `UsageError` if the schema is invalid or contains keywords that Zod cannot check (`if`,
 * `not`, …).
 */
export function readAnswerSchema(schema: unknown): AnswerSchema {
  if (!isRecord(schema)) throw new UsageError("Invalid JSON Schema for the answer: expected an object.")
  const wrapped = schema.type !== "object"
  return { given: schema, sent: wrapped ? wrap(schema) : schema, wrapped, checker: checkerOf(schema) }
}

/** Keywords with definitions. They stay at the root so that `$ref` resolves. */
const definitionKeys = ["$defs", "definitions"] as const

function wrap(schema: JsonSchema): JsonSchema {
  const { $schema: _, ...answer } = schema
  const sent: JsonSchema = {
    type: "object",
    properties: { answer },
    required: ["answer"],
    additionalProperties: false,
  }
  for (const key of definitionKeys) {
    if (!(key in answer)) continue
    sent[key] = answer[key]
    delete answer[key]
  }
  return sent
}

function checkerOf(schema: JsonSchema): z.ZodType {
  try {
    return z.fromJSONSchema(schema, {
      defaultTarget: "definitions" in schema ? "draft-7" : "draft-2020-12",
    })
  } catch (error) {
    throw new UsageError(
      `Cannot check the schema for the answer: ${errorMessage(error)}. Correct the schema, or remove the unsupported keyword.`,
      error,
    )
  }
}

/**
 * Returns true if a server can enforce the schema strictly. OpenAI and compatible servers require every object to have
 * `additionalProperties: false` and to list all its keys in `required`.
 */
export function isStrictSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrictSchema)
  if (!isRecord(schema)) return true
  if (schema.type === "object" || isRecord(schema.properties)) {
    const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : []
    const keys = Object.keys(isRecord(schema.properties) ? schema.properties : {})
    if (schema.additionalProperties !== false || !keys.every((key) => required.includes(key))) return false
  }
  return Object.values(schema).every(isStrictSchema)
}
