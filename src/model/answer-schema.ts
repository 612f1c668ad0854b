import * as z from "zod"
import { errorMessage, UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"

/** What an answer has to fit. */
export interface AnswerSchema {
  /** As it was given. */
  given: JsonSchema
  /** As it is sent. Servers take an object and nothing else at the top: another schema is that of its `answer`. */
  sent: JsonSchema
  /** True: `sent` is `{ answer }` with the given schema inside. */
  wrapped: boolean
  /** Of the given schema: defaults are filled in. */
  checker: z.ZodType
}

/** Reads a JSON Schema. Throws `UsageError` for what is none, or says what Zod cannot check (`if`, `not`, …). */
export function readAnswerSchema(schema: unknown): AnswerSchema {
  if (!isRecord(schema)) throw new UsageError("The schema of the answer is no JSON Schema: it is no object.")
  const wrapped = schema.type !== "object"
  return { given: schema, sent: wrapped ? wrap(schema) : schema, wrapped, checker: checkerOf(schema) }
}

/** Names of definitions that `$ref` points to from the root. */
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
      `The schema of the answer cannot be checked: ${errorMessage(error)}. Leave that out of it.`,
      error,
    )
  }
}

/**
 * True where a server can hold a model to the schema word by word: OpenAI and its like take only objects that are closed
 * and need all their keys.
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
