import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { nearNames } from "../util/similarity.ts"

/**
 * The keys of a call's arguments that its tool does not have, in words, each with the one that was probably meant. A tool
 * gets none of them, and a model that makes one up is not stopped by it; a person has made a slip. Where the schema leaves
 * open what else there may be, or which of several shapes is meant, nothing is said.
 */
export function unknownKeys(schema: JsonSchema, input: unknown, path = ""): string[] {
  if (Array.isArray(input)) {
    const { items } = schema
    return isRecord(items)
      ? input.flatMap((item, index) => unknownKeys(items, item, `${path}[${index}]`))
      : []
  }
  const { properties } = schema
  if (!isRecord(input) || !isRecord(properties)) return []
  const known = Object.keys(properties)
  return Object.entries(input).flatMap(([key, value]) => {
    const here = path === "" ? key : `${path}.${key}`
    const inner = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (isRecord(inner)) return unknownKeys(inner, value, here)
    if (inner !== undefined || schema.additionalProperties !== false) return []
    return [`it has no argument "${here}". ${suggestion(key, known)}`]
  })
}

function suggestion(key: string, known: readonly string[]): string {
  const [near] = nearNames(key, known, Math.ceil(key.length / 3))
  const meant = near ?? known.find((name) => name.toLowerCase().includes(key.toLowerCase()))
  if (meant !== undefined) return `Did you mean "${meant}"?`
  return known.length > 0 ? `There are: ${known.join(", ")}.` : "The tool takes no arguments."
}
