import { isRecord, own } from "../util/json.ts"
import { type JsonSchema, propertiesOf } from "../util/json-schema.ts"
import { aliasesOf, nearNames, wordsOf } from "../util/similarity.ts"

/** A key in the arguments that the schema does not contain. */
export interface UnknownKey {
  /** Location in the arguments, such as `edits[1].old`. */
  path: string
  /** The key that is probably meant, if any. */
  near: string | undefined
  /** All keys of the schema at this location. */
  known: readonly string[]
}

/**
 * Returns the keys that are not in the schema, at every depth. Tools ignore unknown keys, but an unknown key is often a
 * misspelled one. Skips objects for which the schema allows other keys or has alternatives.
 */
export function unknownKeys(schema: JsonSchema, input: unknown, path = ""): UnknownKey[] {
  if (Array.isArray(input)) {
    const { items } = schema
    return isRecord(items)
      ? input.flatMap((item, index) => unknownKeys(items, item, `${path}[${index}]`))
      : []
  }
  if (!isRecord(input) || !isRecord(schema.properties)) return []
  const properties = propertiesOf(schema)
  const known = Object.keys(properties)
  return Object.entries(input).flatMap(([key, value]) => {
    const here = path === "" ? key : `${path}.${key}`
    const inner = own(properties, key)
    if (isRecord(inner)) return unknownKeys(inner, value, here)
    if (inner !== undefined || schema.additionalProperties !== false) return []
    const free = known.filter((name) => !Object.hasOwn(input, name))
    return [{ path: here, near: nearest(key, free), known }]
  })
}

function nearest(key: string, known: readonly string[]): string | undefined {
  const [alias] = aliasesOf(key, known)
  const [near] = nearNames(key, known, Math.ceil(key.length / 3))
  const words = wordsOf(key)
  return alias ?? near ?? known.find((name) => wordsOf(name).some((word) => words.includes(word)))
}
