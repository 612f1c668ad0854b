import { canonicalJson, isRecord, own } from "../util/json.ts"
import { type JsonSchema, literalText, propertiesOf, referenced, requiredOf } from "../util/json-schema.ts"

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

/**
 * Replaces local references with the schemas that they refer to, and removes the definitions, for Gemini. Keywords next
 * to a reference override those of its schema. A reference within its own schema accepts every value of its type.
 */
export function inlineReferences(schema: JsonSchema): JsonSchema {
  let left = maxInlined
  function inline(node: unknown, open: readonly string[]): unknown {
    if (Array.isArray(node)) return node.map((item) => inline(item, open))
    if (!isRecord(node)) return node
    const { $ref, ...rest } = node
    if (typeof $ref !== "string") return mapValues(node, (value) => inline(value, open))
    const target = referenced($ref, schema)
    const siblings = mapValues(rest, (value) => inline(value, open))
    if (!isRecord(target)) return siblings
    left -= 1
    if (open.includes($ref) || left < 0)
      return { ...("type" in target ? { type: target.type } : {}), ...siblings }
    return { ...(inline(target, [...open, $ref]) as JsonSchema), ...siblings }
  }
  if (!hasReference(schema)) return schema
  const { $defs: _, definitions: _definitions, ...rest } = schema
  return inline(rest, []) as JsonSchema
}

/** Maximum number of references to replace, because nested references multiply. */
const maxInlined = 1_000

function hasReference(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(hasReference)
  return isRecord(node) && (typeof node.$ref === "string" || Object.values(node).some(hasReference))
}

function mapValues(record: JsonSchema, change: (value: unknown) => unknown): JsonSchema {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

/**
 * Adds the type to each `enum`, and gives every type a branch of its own, for Kimi. Kimi rejects an `enum` without a
 * type and a literal of another type, such as `null` in a list of strings.
 */
export const typedEnums = everywhere((schema) => {
  const { enum: literals, type, nullable, ...rest } = schema
  if (!Array.isArray(literals) || literals.length === 0) return schema
  const wanted = [type ?? [], nullable === true ? "null" : []].flat()
  const byType = Map.groupBy(literals, typeOfLiteral)
  const [first] = byType.keys()
  if (byType.size === 1 && (type === first || isNumeric(type, first))) return schema
  const branches = [...byType]
    .filter(([kind]) => wanted.length === 0 || wanted.some((each) => each === kind || isNumeric(each, kind)))
    .map(([kind, values]) => (kind === "null" ? { type: kind } : { type: kind, enum: values }))
  const [only] = branches
  if (only === undefined) return schema
  return branches.length === 1 ? { ...rest, ...only } : { ...rest, anyOf: branches }
})

function typeOfLiteral(literal: unknown): string {
  if (literal === null) return "null"
  if (Array.isArray(literal)) return "array"
  return typeof literal
}

function isNumeric(type: unknown, kind: string | undefined): boolean {
  return type === "integer" && kind === "number"
}

/**
 * Moves the keywords next to `anyOf` into its branches, except annotations, for Kimi, which rejects a `type` next to
 * `anyOf`. A branch keeps its own keywords.
 */
export const typesInBranches = everywhere((schema) => {
  const { anyOf } = schema
  if (!Array.isArray(anyOf) || schema.type === undefined) return schema
  const entries = Object.entries(schema).filter(([key]) => key !== "anyOf")
  const moved = Object.fromEntries(entries.filter(([key]) => !annotations.includes(key)))
  const kept = Object.fromEntries(entries.filter(([key]) => annotations.includes(key)))
  return { ...kept, anyOf: anyOf.map((branch) => (isRecord(branch) ? mergedInto(branch, moved) : branch)) }
})

const annotations = ["title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id"]

function mergedInto(branch: JsonSchema, shared: JsonSchema): JsonSchema {
  if (typeof branch.$ref === "string") return branch
  const merged: JsonSchema = { ...shared, ...branch }
  if (isRecord(shared.properties) && isRecord(branch.properties))
    merged.properties = { ...shared.properties, ...branch.properties }
  const required = [...new Set([...requiredOf(shared), ...requiredOf(branch)])]
  if (required.length > 0) merged.required = required
  return merged
}

/** Removes the limits of the lengths of texts, because servers with grammars reject high limits. */
export const withoutTextLengths = everywhere(without(["minLength", "maxLength"]))

/** Removes the keywords that servers with grammars often reject. */
export const withoutTextRules = everywhere(
  without(["pattern", "format", "minLength", "maxLength", "minItems", "maxItems"]),
)

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

/** Returns a transform that removes the keywords. */
function without(keywords: readonly string[]): SchemaTransform {
  return (schema) => {
    if (!keywords.some((key) => key in schema)) return schema
    return Object.fromEntries(Object.entries(schema).filter(([key]) => !keywords.includes(key)))
  }
}

/**
 * Applies a transform at every depth, innermost first. Returns the given schema if the transform changes nothing.
 */
function everywhere(transform: SchemaTransform): SchemaTransform {
  const walk = (schema: unknown): unknown => {
    if (!isRecord(schema)) return schema
    const parts: [string, unknown][] = Object.entries(schema).map(([key, value]) => {
      if (isRecord(value) && inner.includes(key)) return [key, walk(value)]
      if (Array.isArray(value) && lists.includes(key)) return [key, sameOr(value, value.map(walk))]
      if (isRecord(value) && named.includes(key)) {
        const group = Object.entries(value).map(([name, each]) => [name, walk(each)] as const)
        return [key, group.every(([name, each]) => each === value[name]) ? value : Object.fromEntries(group)]
      }
      return [key, value]
    })
    const isSame = parts.every(([key, value]) => value === schema[key])
    return transform(isSame ? schema : Object.fromEntries(parts))
  }
  return (schema) => walk(schema) as JsonSchema
}

function sameOr(list: readonly unknown[], changed: readonly unknown[]): readonly unknown[] {
  return changed.every((item, index) => item === list[index]) ? list : changed
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
