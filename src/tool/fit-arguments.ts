import { canonicalJson, isRecord, isTooDeep, own, parseJson } from "../util/json.ts"
import { type JsonSchema, literalText, propertiesOf, referenced, requiredOf } from "../util/json-schema.ts"
import { aliasesOf, plainName } from "../util/similarity.ts"

/** Arguments that fit the schema as well as possible. `changes` describes each change in a few words. */
export interface FittedArguments {
  args: Record<string, unknown>
  changes: readonly string[]
}

/** Location of a value in the arguments, as in the issues of Zod. */
type Path = readonly PropertyKey[]

/** The result of the tool's own validation. */
export interface Rejections {
  /** Locations of the values that it rejects. */
  paths: readonly Path[]
  /** Whether only values at these locations may change, because the tool accepts more than its JSON Schema. */
  only: boolean
}

/** Maximum number of visited values and their maximum depth. Beyond these limits, arguments stay as they are. */
const maxVisits = 20_000
const maxDepth = 200

/**
 * Corrects arguments that a model wrote in the wrong form, guided by the tool's JSON Schema:
 *
 * - An optional field that is `null` or an empty text is removed.
 * - A text that contains the wanted number, boolean, list, object or literal becomes this value.
 * - A single value becomes a list of one item.
 * - A key in another spelling, such as `file_path`, gets the name in the schema. If exactly one required key is missing,
 *   one unknown key that is an alias of it, such as `cmd` for `command`, gets its name.
 *
 * A value that the schema accepts does not change. A value that fits in no way or in several ways does not change
 * either. Never throws.
 */
export function fitArguments(
  schema: JsonSchema,
  args: Record<string, unknown>,
  rejections: Rejections = { paths: [], only: false },
): FittedArguments {
  if (isTooDeep(args)) return { args, changes: [] }
  const { value, changes } = fitValue(args, schema, [], { root: schema, visits: 0, depth: 0, rejections })
  return isRecord(value) ? { args: value, changes } : { args, changes: [] }
}

/** State while the arguments of one call are fitted. */
interface Walk {
  root: JsonSchema
  visits: number
  depth: number
  rejections: Rejections
}

/** A value after fitting. */
interface Fit {
  value: unknown
  /** Whether the schema accepts the value. */
  accepted: boolean
  changes: readonly string[]
  /** Size of the changes. The branch of a union with the smallest cost is used. */
  cost: number
}

/** An unknown key is not a change, but suggests that the model means another branch of a union. */
const costs = { unknownKey: 1, removed: 1, read: 1, renamed: 2, wrapped: 4 }

function unchanged(value: unknown, accepted = true): Fit {
  return { value, accepted, changes: [], cost: 0 }
}

/** Fits the value first, and then the result, as `next` does. */
function then(first: Fit, next: (value: unknown) => Fit): Fit {
  const second = next(first.value)
  return {
    value: second.value,
    accepted: first.accepted && second.accepted,
    changes: [...first.changes, ...second.changes],
    cost: first.cost + second.cost,
  }
}

function fitValue(value: unknown, schema: unknown, path: Path, walk: Walk): Fit {
  walk.visits += 1
  if (!isRecord(schema) || walk.visits > maxVisits || walk.depth > maxDepth) return unchanged(value)
  const { paths, only } = walk.rejections
  if (only && path.length > 0 && !paths.some((rejected) => overlap(rejected, path))) return unchanged(value)
  walk.depth += 1
  const found = fitSchema(value, schema, path, walk)
  walk.depth -= 1
  return found
}

/** Returns true if one of the values contains the other, or if the values are the same. */
function overlap(a: Path, b: Path): boolean {
  return (
    a.slice(0, b.length).every((key, index) => String(key) === String(b[index])) &&
    b.slice(0, a.length).every((key, index) => String(key) === String(a[index]))
  )
}

function fitSchema(value: unknown, schema: JsonSchema, path: Path, walk: Walk): Fit {
  if (typeof schema.$ref === "string") return fitValue(value, referenced(schema.$ref, walk.root), path, walk)
  if (value === null && schema.nullable === true) return unchanged(value)
  const literals = "const" in schema ? [schema.const] : schema.enum
  if (Array.isArray(literals)) return fitLiteral(value, literals, path)
  if (!hasType(value, schema.type)) return convert(value, schema, path, walk)
  let current = unchanged(value, !(value === "" && rejectsEmptyText(schema)))
  for (const branches of [schema.anyOf, schema.oneOf])
    if (Array.isArray(branches)) current = then(current, (each) => fitUnion(each, branches, path, walk))
  for (const part of Array.isArray(schema.allOf) ? schema.allOf : [])
    current = then(current, (each) => fitValue(each, part, path, walk))
  return then(current, (each) => {
    if (Array.isArray(each)) return fitItems(each, schema, path, walk)
    return isRecord(each) ? fitProperties(each, schema, path, walk) : unchanged(each)
  })
}

function fitLiteral(value: unknown, literals: readonly unknown[], path: Path): Fit {
  const json = canonicalJson(value)
  if (literals.some((literal) => canonicalJson(literal) === json)) return unchanged(value)
  const index = literals.findIndex((literal) => typeof literal !== "string" && literalText(literal) === value)
  return index < 0 ? unchanged(value, false) : readAs(literals[index], path)
}

/** Converts a value of the wrong type. */
function convert(value: unknown, schema: JsonSchema, path: Path, walk: Walk): Fit {
  const read = readText(value, schema.type)
  const candidates = read === undefined ? [] : [readAs(read.value, path)]
  if (hasType([], schema.type) && mayBeItem(value))
    candidates.push({ ...readAs([value], path), cost: costs.wrapped })
  const found = candidates.map((candidate) => then(candidate, (each) => fitValue(each, schema, path, walk)))
  return found.find(({ accepted }) => accepted) ?? unchanged(value, false)
}

function readAs(value: unknown, path: Path): Fit {
  const change = `${label(path)} was read as ${Array.isArray(value) ? "a list" : describe(value)}`
  return { value, accepted: true, changes: [change], cost: costs.read }
}

function describe(value: unknown): string {
  if (value === null) return "null"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}

function label(path: Path): string {
  return path.length === 0 ? "the input" : `"${path.map(String).join(".")}"`
}

/** Returns the value that a text contains as JSON, if it is of the wanted type. */
function readText(value: unknown, type: unknown): { value: unknown } | undefined {
  if (typeof value !== "string") return undefined
  const text = value.trim()
  const parsed = parseJson(/^(?:true|false)$/i.test(text) ? text.toLowerCase() : text)
  if (!parsed.ok || isTooDeep(parsed.value)) return undefined
  // A larger integer would become another number.
  if (Number.isInteger(parsed.value) && !Number.isSafeInteger(parsed.value)) return undefined
  return hasType(parsed.value, type) ? parsed : readText(parsed.value, type)
}

/** Returns false for values that are not items of a list: empty values, and texts that seem to contain a whole list. */
function mayBeItem(value: unknown): boolean {
  if (typeof value !== "string") return value !== null && !Array.isArray(value)
  return !isEmpty(value) && !/^\s*\[[\s\S]*\]\s*$/.test(value)
}

/** Uses the branch with the smallest change. If several such branches have different results, changes nothing. */
function fitUnion(value: unknown, branches: readonly unknown[], path: Path, walk: Walk): Fit {
  const found = branches
    .map((branch) => fitValue(value, branch, path, walk))
    .filter(({ accepted }) => accepted)
  const least = Math.min(...found.map(({ cost }) => cost))
  const best = found.filter(({ cost }) => cost === least)
  const same = best.find((each) => Object.is(each.value, value))
  if (same) return same
  const results = new Set(best.map((each) => canonicalJson(each.value)))
  return (results.size === 1 ? best[0] : undefined) ?? unchanged(value, false)
}

function fitItems(list: readonly unknown[], schema: JsonSchema, path: Path, walk: Walk): Fit {
  const { prefixItems, items, additionalItems } = schema
  const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
  const rest = Array.isArray(items) ? additionalItems : items
  const fits = list.map((item, index) =>
    fitValue(item, index < tuple.length ? tuple[index] : rest, [...path, index], walk),
  )
  const values = fits.map(({ value }) => value)
  return combined(fits, values.every((value, index) => Object.is(value, list[index])) ? list : values)
}

/** Returns one fit for a list or an object with these parts. */
function combined(parts: readonly Fit[], value: unknown): Fit {
  return {
    value,
    accepted: parts.every(({ accepted }) => accepted),
    changes: parts.flatMap(({ changes }) => changes),
    cost: parts.reduce((sum, { cost }) => sum + cost, 0),
  }
}

function fitProperties(
  record: Readonly<Record<string, unknown>>,
  schema: JsonSchema,
  path: Path,
  walk: Walk,
): Fit {
  const [known, required] = [propertiesOf(schema), requiredOf(schema)]
  const renamed = renamedKeys(
    record,
    schema,
    (value, key) => fitValue(value, known[key], [...path, key], walk).accepted,
  )
  const fits: Fit[] = []
  const entries: [string, unknown][] = []
  for (const [sent, value] of Object.entries(record)) {
    const key = renamed.get(sent) ?? sent
    const here = [...path, key]
    const found = fitProperty(value, { key, schema, path: here }, walk)
    const isRejected = !found.accepted || walk.rejections.paths.some((each) => isSame(each, here))
    if (Object.hasOwn(known, key) && !required.includes(key) && isEmpty(value) && isRejected) {
      fits.push(changed(`${label(here)} was empty and is left out`, costs.removed))
      continue
    }
    if (key !== sent) fits.push(changed(`${label([...path, sent])} was read as "${key}"`, costs.renamed))
    fits.push(found)
    entries.push([key, found.value])
  }
  const isSameRecord =
    entries.length === Object.keys(record).length &&
    entries.every(([key, value]) => Object.hasOwn(record, key) && Object.is(record[key], value))
  const found = combined(fits, isSameRecord ? record : Object.fromEntries(entries))
  const isComplete = required.every((key) => entries.some(([name]) => name === key))
  return { ...found, accepted: found.accepted && isComplete }
}

function fitProperty(
  value: unknown,
  { key, schema, path }: { key: string; schema: JsonSchema; path: Path },
  walk: Walk,
): Fit {
  const property = own(propertiesOf(schema), key)
  if (property !== undefined) return fitValue(value, property, path, walk)
  if (isRecord(schema.patternProperties)) return unchanged(value)
  if (schema.additionalProperties === false) return { ...unchanged(value), cost: costs.unknownKey }
  return fitValue(value, schema.additionalProperties, path, walk)
}

function changed(change: string, cost: number): Fit {
  return { value: undefined, accepted: true, changes: [change], cost }
}

function isSame(a: Path, b: Path): boolean {
  return a.length === b.length && overlap(a, b)
}

/** Returns true for values with which models fill in fields that they do not use. */
function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === "string" && ["", "null"].includes(value.trim()))
}

/** Returns true if the schema accepts texts, but not the empty text. */
function rejectsEmptyText({ minLength, format, pattern }: JsonSchema): boolean {
  if (typeof minLength === "number" && minLength > 0) return true
  if (typeof format === "string") return true
  try {
    return typeof pattern === "string" && !new RegExp(pattern, "u").test("")
  } catch {
    return false
  }
}

/**
 * Returns the names in the schema for unknown keys of the object. Renames a key in another spelling if the name in the
 * schema is required or if the schema rejects unknown keys. `accepts` returns true if a property accepts a value.
 */
function renamedKeys(
  record: Readonly<Record<string, unknown>>,
  schema: JsonSchema,
  accepts: (value: unknown, key: string) => boolean,
): ReadonlyMap<string, string> {
  const known = propertiesOf(schema)
  const renamed = new Map<string, string>()
  const unknown = Object.keys(record).filter((key) => !Object.hasOwn(known, key))
  if (unknown.length === 0 || isRecord(schema.patternProperties)) return renamed
  const free = Object.keys(known).filter((key) => !Object.hasOwn(record, key))
  const missing = free.filter((key) => requiredOf(schema).includes(key))
  for (const key of schema.additionalProperties === false ? free : missing) {
    const spellings = unknown.filter((sent) => plainName(sent) === plainName(key))
    const [only] = spellings
    if (only !== undefined && spellings.length === 1) renamed.set(only, key)
  }
  const left = missing.filter((key) => ![...renamed.values()].includes(key))
  const [last] = left
  if (last === undefined || left.length > 1) return renamed
  const aliases = unknown.filter((sent) => {
    if (renamed.has(sent)) return false
    const meant = aliasesOf(sent, free)
    return meant.length === 1 && meant[0] === last && accepts(record[sent], last)
  })
  const [alias] = aliases
  if (alias !== undefined && aliases.length === 1) renamed.set(alias, last)
  return renamed
}

function hasType(value: unknown, type: unknown): boolean {
  const kinds = [type].flat().filter((kind) => typeof kind === "string")
  return kinds.length === 0 || kinds.some((kind) => isKind(value, kind))
}

function isKind(value: unknown, kind: string): boolean {
  if (kind === "null") return value === null
  if (kind === "array") return Array.isArray(value)
  if (kind === "object") return isRecord(value)
  if (kind === "integer") return Number.isInteger(value)
  return typeof value === kind
}
