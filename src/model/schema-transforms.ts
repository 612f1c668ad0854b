import { canonicalJson, isRecord, own } from "../util/json.ts"
import { type JsonSchema, literalText, propertiesOf, requiredOf } from "../util/json-schema.ts"

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
 * Replaces a union at the top level with one object that has the keys of all branches, for servers that reject such
 * unions. A key is required if the schema itself, all branches of `anyOf` and `oneOf`, or any branch of `allOf` require
 * it. The tool itself rejects arguments that match no branch.
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
  const properties = {
    ...eitherProperties(either),
    ...Object.assign({}, ...[...both, rest].map(propertiesOf)),
  }
  return { ...rest, type: "object", properties, required: required.length > 0 ? required : undefined }
}

/**
 * Returns the properties of all alternatives. If a property differs between alternatives, the result accepts any of its
 * schemas.
 */
function eitherProperties(branches: readonly JsonSchema[]): Record<string, unknown> {
  const keys = new Set(branches.flatMap((branch) => Object.keys(propertiesOf(branch))))
  return Object.fromEntries(
    [...keys].map((key) => {
      const having = branches.map(propertiesOf).filter((properties) => Object.hasOwn(properties, key))
      return [key, anyOfThese(having.map((properties) => properties[key]))]
    }),
  )
}

/** Returns a schema that accepts every value that at least one of the given schemas accepts. */
function anyOfThese(schemas: readonly unknown[]): unknown {
  const distinct = [...new Map(schemas.map((schema) => [canonicalJson(schema), schema])).values()]
  return distinct.length === 1 ? distinct[0] : { anyOf: distinct }
}

/** Replaces `const` with an `enum` of one value, for servers that do not support `const`. */
export const constAsEnum = everywhere((schema) => {
  if (!("const" in schema)) return schema
  const { const: only, ...rest } = schema
  return { ...rest, enum: [only] }
})

/** Adds `items` of type `string` to arrays that define no items, because OpenAI and Gemini reject such arrays. */
export const typedItems = everywhere((schema) =>
  schema.type === "array" && schema.items === undefined && schema.prefixItems === undefined
    ? { ...schema, items: { type: "string" } }
    : schema,
)

/** Replaces tuples with arrays that accept the type of each item at every position. */
export const tuplesAsLists = everywhere((schema) => {
  const { prefixItems, additionalItems, ...rest } = schema
  const tuple = Array.isArray(prefixItems) ? prefixItems : schema.items
  if (!Array.isArray(tuple)) return schema
  const { items, ...list } = rest
  const more = Array.isArray(prefixItems) ? items : additionalItems
  if (more === false) list.maxItems ??= tuple.length
  const types = isRecord(more) ? [...tuple, more] : tuple
  // A tuple without a limit accepts further items of any type, including the given types.
  return types.length === 0 ? list : { ...list, items: anyOfThese(types) }
})

/** Removes all keywords next to `$ref`, except definitions. */
export const bareReferences = everywhere((schema) => {
  if (typeof schema.$ref !== "string") return schema
  const kept = Object.entries(schema).filter(([key]) => ["$ref", "$defs", "definitions"].includes(key))
  return kept.length === Object.keys(schema).length ? schema : Object.fromEntries(kept)
})

/** Converts enum values to strings, for Gemini. `fitArguments` converts the arguments back. */
export const textEnums = everywhere((schema) => {
  const literals = schema.enum
  if (!Array.isArray(literals)) return schema
  const texts = [...new Set(literals.filter((literal) => literal !== null).map(literalText))]
  if (texts.length === 0) return { ...schema, type: "string", enum: [literalText(null)] }
  const nullable = literals.includes(null) ? { nullable: true } : {}
  return { ...schema, type: "string", enum: texts, ...nullable }
})

/** Replaces lists of types with `nullable` and `anyOf`. Each alternative keeps the keywords of its type. */
export const singleTypes = everywhere((schema) => {
  const { type, ...rest } = schema
  if (!Array.isArray(type)) return schema
  const kinds = type.filter((kind) => kind !== "null")
  if (kinds.length === 0) return { ...rest, type: "null" }
  const nullable = kinds.length < type.length ? { nullable: true } : {}
  if (kinds.length === 1) return { ...rest, type: kinds[0], ...nullable }
  const entries = Object.entries(rest)
  const general = entries.filter(([key]) => own(keywordTypes, key) === undefined)
  return {
    ...Object.fromEntries(general),
    anyOf: kinds.map((kind) => ({
      type: kind,
      ...Object.fromEntries(entries.filter(([key]) => own(keywordTypes, key) === kind)),
    })),
    ...nullable,
  }
})

/** Keywords that apply to one type only. */
const keywordTypes: Readonly<Record<string, string>> = Object.assign(
  Object.create(null),
  ...Object.entries({
    array: ["items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"],
    object: ["properties", "required", "additionalProperties", "patternProperties", "propertyNames"],
  }).map(([type, keywords]) => Object.fromEntries(keywords.map((keyword) => [keyword, type]))),
)

/**
 * Limits `required` to existing properties. Removes `required` and `properties` from schemas of types other than
 * `object`.
 */
export const honestRequired = everywhere((schema) => {
  if (schema.required === undefined && schema.properties === undefined) return schema
  const { required, properties, ...rest } = schema
  const types = [schema.type].flat()
  if (schema.type !== undefined && !types.includes("object")) return rest
  const keys = Array.isArray(required)
    ? required.filter((key: string) => Object.hasOwn(propertiesOf(schema), key))
    : []
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties }),
    ...(keys.length > 0 ? { required: keys } : {}),
  }
})

/** Keywords that contain one schema (`inner`), a list of schemas (`lists`), or schemas by name (`named`). */
const inner = ["items", "additionalItems", "additionalProperties", "not", "contains", "propertyNames"]
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
