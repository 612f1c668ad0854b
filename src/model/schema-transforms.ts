import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"

/** Makes another schema of one. The given one is not changed. */
export type SchemaTransform = (schema: JsonSchema) => JsonSchema

/** Arguments are an object for every provider; schemas from outside sometimes leave out to say so. */
export function asObject(schema: JsonSchema): JsonSchema {
  if (schema.type === "object" && schema.properties !== undefined) return schema
  return { ...schema, type: "object", properties: schema.properties ?? {} }
}

/**
 * For servers that take no alternatives at the top: the keys of all branches, of which those are needed that every
 * branch needs (`allOf`: any). What this lets through too, the tool itself refuses.
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
  return { ...rest, type: "object", properties, ...(required.length > 0 ? { required } : {}) }
}

/** `const` as an `enum` of one, for servers that do not know it. */
export const constAsEnum = everywhere((schema) => {
  if (!("const" in schema)) return schema
  const { const: only, ...rest } = schema
  return { ...rest, enum: [only] }
})

/** Lists say what they are lists of: without it OpenAI and Gemini refuse the whole request. */
export const typedItems = everywhere((schema) =>
  schema.type === "array" && schema.items === undefined && schema.prefixItems === undefined
    ? { ...schema, items: { type: "string" } }
    : schema,
)

/** Tuples as lists of their first kind. */
export const tuplesAsLists = everywhere((schema) => {
  const { prefixItems, ...rest } = schema
  const [first] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(schema.items) ? schema.items : []
  return first === undefined ? schema : { ...rest, items: first }
})

/** References stand alone: what is beside one is said where it points to. */
export const bareReferences = everywhere((schema) =>
  typeof schema.$ref === "string" && Object.keys(schema).length > 1 ? { $ref: schema.$ref } : schema,
)

/** Gemini takes enumerations of texts alone. */
export const textEnums = everywhere((schema) => {
  if (!Array.isArray(schema.enum)) return schema
  const isNumber = schema.type === "integer" || schema.type === "number"
  return {
    ...schema,
    enum: schema.enum.map(String),
    ...(schema.type === undefined || isNumber ? { type: "string" } : {}),
  }
})

/** One type each, with `nullable` for null and `anyOf` for several. */
export const singleTypes = everywhere((schema) => {
  const { type, ...rest } = schema
  if (!Array.isArray(type)) return schema
  const kinds = type.filter((kind) => kind !== "null")
  const nullable = kinds.length < type.length ? { nullable: true } : {}
  if (kinds.length === 1) return { ...rest, type: kinds[0], ...nullable }
  return { ...rest, anyOf: kinds.map((kind) => ({ type: kind })), ...nullable }
})

/** Only keys that are there can be needed, and only objects have any. */
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

/** Keys under which schemas stand: one, a list of them, or by names. */
const inner = ["items", "additionalProperties", "not", "contains", "propertyNames"]
const lists = ["anyOf", "oneOf", "allOf", "prefixItems", "items"]
const named = ["properties", "patternProperties", "$defs", "definitions"]

/** The transform at every depth, the innermost first. Names of properties and values of `enum` are no schemas. */
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

/** A schema is the same object in each request, and so is then what it becomes. */
const transformed = new WeakMap<readonly SchemaTransform[], WeakMap<JsonSchema, JsonSchema>>()

/** The schema after each of the transforms, in order. The given one is not changed. */
export function transformSchema(schema: JsonSchema, transforms: readonly SchemaTransform[]): JsonSchema {
  const known = transformed.get(transforms) ?? new WeakMap<JsonSchema, JsonSchema>()
  transformed.set(transforms, known)
  const result = known.get(schema) ?? transforms.reduce((before, transform) => transform(before), schema)
  known.set(schema, result)
  return result
}
