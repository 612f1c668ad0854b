import { canonicalJson, isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { literalText } from "./schema-transforms.ts"

/** Maximum number of visited values and their maximum depth. Beyond these limits, arguments stay as they are. */
const maxVisits = 20_000
const maxDepth = 200

/**
 * Returns the arguments with strings replaced by the literals that the schema requires: `"2"` becomes `2` for
 * `{ enum: [1, 2] }`. Some models send literals as strings, because their servers accept only strings in an `enum`.
 * Values that the schema accepts, and values that match no literal, stay as they are. Never throws.
 */
export function restoreLiterals(schema: JsonSchema, args: Record<string, unknown>): Record<string, unknown> {
  const restored = restore(args, schema, { root: schema, visits: 0, depth: 0 })
  return isRecord(restored?.value) ? restored.value : args
}

/** State while the arguments of one call are restored. */
interface Walk {
  root: JsonSchema
  visits: number
  depth: number
}

/** A value that fits its schema, with literals restored. Undefined if the value does not fit. */
type Fit = { value: unknown } | undefined

function restore(value: unknown, schema: unknown, walk: Walk): Fit {
  walk.visits += 1
  if (!isRecord(schema) || walk.visits > maxVisits || walk.depth > maxDepth) return { value }
  walk.depth += 1
  const result = restoreSchema(value, schema, walk)
  walk.depth -= 1
  return result
}

function restoreSchema(value: unknown, schema: JsonSchema, walk: Walk): Fit {
  if (typeof schema.$ref === "string") return restore(value, referenced(schema.$ref, walk.root), walk)
  const literals = "const" in schema ? [schema.const] : schema.enum
  if (Array.isArray(literals)) return restoreLiteral(value, literals)
  if (!hasType(value, schema.type)) return undefined
  let current: Fit = { value }
  for (const branches of [schema.anyOf, schema.oneOf])
    if (Array.isArray(branches) && current) current = restoreAny(current.value, branches, walk)
  for (const part of Array.isArray(schema.allOf) ? schema.allOf : [])
    if (current) current = restore(current.value, part, walk)
  if (!current) return undefined
  if (Array.isArray(current.value)) return restoreItems(current.value, schema, walk)
  return isRecord(current.value) ? restoreProperties(current.value, schema, walk) : current
}

function restoreLiteral(value: unknown, literals: readonly unknown[]): Fit {
  const json = canonicalJson(value)
  if (literals.some((literal) => canonicalJson(literal) === json)) return { value }
  const index = literals.findIndex((literal) => typeof literal !== "string" && literalText(literal) === value)
  return index < 0 ? undefined : { value: literals[index] }
}

/** Tries the branches of a union. Prefers a branch that accepts the value unchanged. */
function restoreAny(value: unknown, branches: readonly unknown[], walk: Walk): Fit {
  let first: Fit
  for (const branch of branches) {
    const found = restore(value, branch, walk)
    if (found && Object.is(found.value, value)) return found
    first ??= found
  }
  return first
}

function restoreItems(list: readonly unknown[], schema: JsonSchema, walk: Walk): Fit {
  const { prefixItems, items, additionalItems } = schema
  const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
  const rest = Array.isArray(items) ? additionalItems : items
  const fits = list.map((item, index) => restore(item, index < tuple.length ? tuple[index] : rest, walk))
  if (fits.includes(undefined)) return undefined
  return { value: unchanged(list, fits) ? list : fits.map((item) => item?.value) }
}

function restoreProperties(record: Readonly<Record<string, unknown>>, schema: JsonSchema, walk: Walk): Fit {
  const { properties, required, additionalProperties } = schema
  if (Array.isArray(required) && !required.every((key) => Object.hasOwn(record, String(key))))
    return undefined
  const known = isRecord(properties) ? properties : {}
  const keys = Object.keys(record)
  const fits = keys.map((key) =>
    restore(record[key], Object.hasOwn(known, key) ? known[key] : additionalProperties, walk),
  )
  if (fits.includes(undefined)) return undefined
  const values = keys.map((key) => record[key])
  if (unchanged(values, fits)) return { value: record }
  return { value: Object.fromEntries(keys.map((key, index) => [key, fits[index]?.value])) }
}

function unchanged(values: readonly unknown[], fits: readonly Fit[]): boolean {
  return values.every((value, index) => Object.is(fits[index]?.value, value))
}

function hasType(value: unknown, type: unknown): boolean {
  const kinds = (Array.isArray(type) ? type : [type]).filter((kind) => typeof kind === "string")
  return kinds.length === 0 || kinds.some((kind) => isKind(value, kind))
}

function isKind(value: unknown, kind: string): boolean {
  if (kind === "null") return value === null
  if (kind === "array") return Array.isArray(value)
  if (kind === "object") return isRecord(value)
  if (kind === "integer") return Number.isInteger(value)
  return typeof value === kind
}

/** Returns the schema of a local reference such as `#/$defs/node`, or undefined. */
function referenced(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith("#")) return undefined
  const keys = reference.slice(1).split("/").slice(1)
  return keys
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), root)
}
