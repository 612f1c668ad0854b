import type * as z from "zod"
import { nearNames } from "../util/similarity.ts"
import type { ConfigNode } from "./node.ts"

/**
 * What is wrong with a value: what is expected, what kind of value was found, and what to write. Strings of the file are
 * never shown: they could be secrets. `description` is what the schema says of the key. Ends with a full stop.
 */
export function describeMistake(
  issue: z.core.$ZodIssue,
  { name, found, description }: { name: string; found: ConfigNode | undefined; description?: string },
): string {
  const expected = alternatives([...new Set(expectations(issue))])
  const more = remedy(issue, found) ?? (description ? ` ${description}.` : "")
  if (found === undefined) return `${name} is missing: expected ${expected}.${more}`
  const words = { named: valuesOf(issue).length > 0, number: isOutOfRange(issue) }
  return `${name}: expected ${expected}, found ${foundWords(found, words)}.${more}`
}

/** What a value is, for people. `named`: strings that are names were expected; `number`: a number, and none of this size. */
export function foundWords(node: ConfigNode, { named = false, number = false } = {}): string {
  if (node.kind === "array") return node.items.length === 0 ? "an empty list" : "a list"
  if (node.kind === "object") return node.entries.length === 0 ? "an empty object" : "an object"
  if (typeof node.value === "number" && !number) return "a number"
  if (typeof node.value !== "string") return String(node.value)
  return node.value === "" ? "an empty string" : named ? "another string" : "a string"
}

/** `"a", "b" or "c"`. */
export function alternatives(words: readonly string[]): string {
  const last = words.at(-1) ?? ""
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} or ${last}` : last
}

const kinds: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list ([…])",
  tuple: "a list ([…])",
  object: "an object ({…})",
  record: "an object ({…})",
}

function expectations(issue: z.core.$ZodIssue): string[] {
  switch (issue.code) {
    case "invalid_type":
      return [kinds[issue.expected] ?? issue.expected]
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value))
    case "invalid_union":
      return issue.errors.flatMap((errors) => errors.flatMap(expectations))
    case "too_small":
      return [boundWords(issue.origin, issue.minimum, issue.inclusive === false ? "above" : "of at least")]
    case "too_big":
      return [boundWords(issue.origin, issue.maximum, issue.inclusive === false ? "below" : "of at most")]
    case "invalid_format":
      if (issue.format === "url") return ["an address with http:// or https://"]
  }
  return [issue.message.replace(/^expected /, "")]
}

function boundWords(origin: string, bound: number | bigint, words: string): string {
  const items = Number(bound)
  if (origin === "string")
    return items === 1 ? "a string that is not empty" : `a string ${words} ${items} letters`
  if (origin === "array") return items === 1 ? "a list that is not empty" : `a list ${words} ${items} items`
  return `a number ${words} ${items}`
}

function isOutOfRange(issue: z.core.$ZodIssue): boolean {
  return issue.code === "too_small" || issue.code === "too_big" || wantedTypes(issue).includes("int")
}

/** How what was written becomes what is expected, where that can be told. */
function remedy(issue: z.core.$ZodIssue, found: ConfigNode | undefined): string | undefined {
  if (found?.kind !== "scalar") return undefined
  const { value } = found
  const wanted = new Set(wantedTypes(issue))
  if (typeof value === "number" || typeof value === "boolean")
    return wanted.has("string") ? " Write it in quotes." : undefined
  if (typeof value !== "string") return undefined
  const [near] = nearNames(value, valuesOf(issue), 2)
  if (near !== undefined) return ` Did you mean "${near}"?`
  const isNumber = value.trim() !== "" && Number.isFinite(Number(value))
  if ((wanted.has("number") && isNumber) || (wanted.has("boolean") && /^(?:true|false)$/.test(value)))
    return " Write it without quotes."
  if (!wanted.has("array")) return undefined
  return /\s/.test(value.trim()) ? ' Write each word by itself: ["…", "…"].' : ' Write it in brackets: ["…"].'
}

function wantedTypes(issue: z.core.$ZodIssue): string[] {
  if (issue.code === "invalid_type") return [issue.expected]
  return issue.code === "invalid_union" ? issue.errors.flatMap((errors) => errors.flatMap(wantedTypes)) : []
}

/** The names that are taken. */
function valuesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === "invalid_value") return issue.values.filter((value) => typeof value === "string")
  return issue.code === "invalid_union" ? issue.errors.flatMap((errors) => errors.flatMap(valuesOf)) : []
}
