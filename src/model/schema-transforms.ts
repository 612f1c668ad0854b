import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"

/** Returns a transformed schema. Does not change the given schema. */
export type SchemaTransform = (schema: JsonSchema) => JsonSchema

/**
 * Adds `type: "object"` and `properties`, which external schemas sometimes omit. Every provider requires an object for
 * arguments.
 */
export function asObject(schema: JsonSchema): JsonSchema {
  if (schema.type === "object" && schema.properties !== undefined) return schema
  return { ...schema, type: "object", properties: schema.properties ?? {} }
}

/**
 * Replaces a union at the top level with one object that has the keys of all branches, for servers that refuse such
 * unions. A key is required if all branches of `anyOf` and `oneOf` or any branch of `allOf` require it. The tool
 * rejects other invalid arguments.
 */
export function withoutTopUnion(schema: JsonSchema): JsonSchema {
  const { anyOf, oneOf, allOf, ...rest } = schema
  const [either, both] = [[...records(anyOf), ...records(oneOf)], records(allOf)]
  if (either.length + both.length === 0) return schema
  const needed = both.flatMap(requiredOf)
  const shared = either
    .map(requiredOf)
    .reduce((a, b) => a.filter((key) => b.includes(key)), requiredOf(either[0]))
  const required = [...new Set([...requiredOf(rest), ...needed, ...shared])]
  const properties = Object.assign(
    {},
    ...[...either, ...both, rest].map(({ properties: own }) => (isRecord(own) ? own : {})),
  )
  return { ...rest, type: "object", properties, required: required.length > 0 ? required : undefined }
}

/** Replaces `const` with an `enum` of one value, for servers that do not support `const`. */
export const constAsEnum = everywhere((schema) => {
  if (!("const" in schema)) return schema
  const { const: only, ...rest } = schema
  return { ...rest, enum: [only] }
})

/** Adds missing `items` to arrays. OpenAI and Gemini refuse requests without them. */
export const typedItems = everywhere((schema) =>
  schema.type === "array" && schema.items === undefined && schema.prefixItems === undefined
    ? { ...schema, items: { type: "string" } }
    : schema,
)

/** Replaces tuples with arrays of their first item type. */
export const tuplesAsLists = everywhere((schema) => {
  const { prefixItems, ...rest } = schema
  const [first] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(schema.items) ? schema.items : []
  return first === undefined ? schema : { ...rest, items: first }
})

/** Removes all keywords next to `$ref`. */
export const bareReferences = everywhere((schema) =>
  typeof schema.$ref === "string" && Object.keys(schema).length > 1 ? { $ref: schema.$ref } : schema,
)

/** Converts enum values to strings, for Gemini. */
export const textEnums = everywhere((schema) => {
  if (!Array.isArray(schema.enum)) return schema
  const isNumber = schema.type === "integer" || schema.type === "number"
  return {
    ...schema,
    enum: schema.enum.map(String),
    type: schema.type === undefined || isNumber ? "string" : schema.type,
  }
})

/** Replaces lists of types with `nullable` and `anyOf`. */
export const singleTypes = everywhere((schema) => {
  const { type, ...rest } = schema
  if (!Array.isArray(type)) return schema
  const kinds = type.filter((kind) => kind !== "null")
  const nullable = kinds.length < type.length ? { nullable: true } : {}
  if (kinds.length === 1) return { ...rest, type: kinds[0], ...nullable }
  return { ...rest, anyOf: kinds.map((kind) => ({ type: kind })), ...nullable }
})

/**
 * Limits `required` to existing properties. Removes `required` and `properties` from schemas of types other than
 * `object`.
 */
export const honestRequired = everywhere((schema) => {
  if (schema.required === undefined && schema.properties === undefined) return schema
  const { required, properties, ...rest } = schema
  if (schema.type !== undefined && schema.type !== "object") return rest
  const keys = Array.isArray(required)
    ? required.filter((key: string) => isRecord(properties) && key in properties)
    : []
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties }),
    ...(keys.length > 0 ? { required: keys } : {}),
  }
})

/** Keywords that contain one schema (`inner`), a list of schemas (`lists`), or schemas by name (`named`). */
const inner = ["items", "additionalProperties", "not", "contains", "propertyNames"]
const lists = ["anyOf", "oneOf", "allOf", "prefixItems", "items"]
const named = ["properties", "patternProperties", "$defs", "definitions"]

/** Applies a transform at every depth, innermost first. */
function everywhere(transform: SchemaTransform): SchemaTransform {
  const walk = (schema: unknown): unknown => {
    if (!isRecord(schema)) return schema
    const changed: JsonSchema = { ...schema }
    for (const key of inner) if (isRecord(schema[key])) changed[key] = walk(schema[key])
    for (const key of lists) {
      const list = schema[key]
      if (Array.isArray(list)) changed[key] = list.map(walk)
    }
    for (const key of named) {
      const group = schema[key]
      if (isRecord(group))
        changed[key] = Object.fromEntries(Object.entries(group).map(([name, each]) => [name, walk(each)]))
    }
    return transform(changed)
  }
  return (schema) => walk(schema) as JsonSchema
}

function records(value: unknown): JsonSchema[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function requiredOf(schema: JsonSchema | undefined): string[] {
  return Array.isArray(schema?.required)
    ? schema.required.filter((key): key is string => typeof key === "string")
    : []
}

/** Cached results. A tool's schema is the same object in each request. */
const transformed = new WeakMap<readonly SchemaTransform[], WeakMap<JsonSchema, JsonSchema>>()

/** Applies the transforms in order. Does not change the given schema. */
export function transformSchema(schema: JsonSchema, transforms: readonly SchemaTransform[]): JsonSchema {
  const known = transformed.get(transforms) ?? new WeakMap<JsonSchema, JsonSchema>()
  transformed.set(transforms, known)
  const result = known.get(schema) ?? transforms.reduce((before, transform) => transform(before), schema)
  known.set(schema, result)
  return result
}
