import type * as z from "zod"
import { isRecord } from "../util/json.ts"
import { nearNames } from "../util/similarity.ts"
import { byPosition, type Problem } from "./errors.ts"
import { type ConfigNode, nodeAt, type ObjectNode, type Path, positionOf, toPlain, without } from "./node.ts"
import { configJsonSchema, configSchema } from "./schema.ts"

/** A {@link Problem} with the path of the value. `unknown` is true if the key is not in the schema. */
export interface TreeProblem extends Problem {
  path: Path
  unknown: boolean
}

/** A schema for trees. `json` returns the same schema as JSON Schema, for hints. */
export interface TreeSchema {
  /** Returns the schema, limited to the top-level keys. */
  schema(keys: readonly string[]): z.ZodType
  json(): Readonly<Record<string, unknown>>
}

const configFile: TreeSchema = { schema: configSchema, json: configJsonSchema }

/**
 * Checks a tree against a schema, by default the schema of config files. Returns a problem for each rejected value, in
 * the order of the file's text. The tree of a config file must not contain `permission`.
 */
export function checkTree(tree: ObjectNode, { schema, json }: TreeSchema = configFile): TreeProblem[] {
  // A process checks its config only a few times, so compiling the schema would take longer than the checks.
  const result = schema(tree.entries.map(({ key }) => key)).safeParse(toPlain(tree), { jitless: true })
  const issues = result.success ? [] : result.error.issues
  const checked = { tree, json }
  return [...reservedKeys(tree, []), ...issues.flatMap((issue) => toProblems(checked, issue))].sort(
    byPosition,
  )
}

/** A tree, and the JSON Schema of its root. */
interface Checked {
  tree: ObjectNode
  json: TreeSchema["json"]
}

/**
 * Removes the values that the schema rejects and returns the problems. Used for other programs' files, whose problems
 * are not fatal.
 */
export function pruneTree(tree: ObjectNode): { tree: ObjectNode; dropped: TreeProblem[] } {
  const dropped: TreeProblem[] = []
  let current = tree
  for (;;) {
    const problems = checkTree(current)
    if (problems.length === 0) return { tree: current, dropped }
    dropped.push(...problems)
    const paths = problems.map(({ path }) => existingPath(current, path))
    // Removes the last path first, so that list indexes stay valid.
    for (const path of paths.reverse()) current = without(current, path)
  }
}

/** Shortens the path to its longest prefix that exists. A missing required key cannot be removed. */
function existingPath(tree: ObjectNode, path: Path): Path {
  let end = path.length
  while (end > 1 && nodeAt(tree, path.slice(0, end)) === undefined) end -= 1
  return path.slice(0, end)
}

/** Reports `__proto__` keys, which the schema library ignores in records. */
function reservedKeys(node: ConfigNode, path: Path): TreeProblem[] {
  if (node.kind === "array") return node.items.flatMap((item, index) => reservedKeys(item, [...path, index]))
  if (node.kind === "scalar") return []
  return node.entries.flatMap(({ key, position, value }) => {
    const here = [...path, key]
    if (key !== "__proto__" || path.length === 0) return reservedKeys(value, here)
    return [{ position, path: here, unknown: true, text: `${here.join(".")}: this key is not allowed.` }]
  })
}

function toProblems(checked: Checked, issue: z.core.$ZodIssue): TreeProblem[] {
  const { tree } = checked
  const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step))
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const here = [...path, key]
      const text = `unknown key "${nameOf(here)}".${suggestion(checked, path, key)}`
      return { position: positionOf(tree, here), path: here, unknown: true, text }
    })
  }
  const meant = issue.code === "invalid_union" ? branchMeant(issue.errors) : undefined
  if (meant) {
    return meant.flatMap((inner) => toProblems(checked, { ...inner, path: [...issue.path, ...inner.path] }))
  }
  const { description } = schemaAt(checked, path)
  const about = { name: nameOf(path), found: nodeAt(tree, path), description }
  const text = describeIssue(issue, about)
  return [{ position: positionOf(tree, path), path, unknown: false, text }]
}

/**
 * Returns the issues of the alternative that the file most likely uses: the one with the fewest unknown keys, then the
 * fewest issues. Returns undefined if no alternative or more than one qualifies.
 */
function branchMeant(
  branches: readonly (readonly z.core.$ZodIssue[])[],
): readonly z.core.$ZodIssue[] | undefined {
  const [first, second] = branches
    .map((issues) => issues.map((issue) => withValues(issue, branches)))
    // If the issue concerns the whole value, the value does not have the shape of this alternative.
    .filter((issues) => issues.every(({ code, path }) => path.length > 0 || code === "unrecognized_keys"))
    .sort((a, b) => distance(a) - distance(b))
  return first && second && distance(first) === distance(second) ? undefined : first
}

function distance(issues: readonly z.core.$ZodIssue[]): number {
  const unknown = issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []))
  return unknown.length * 1000 + issues.length
}

/** Adds the accepted values of all alternatives to an issue about the key that selects the alternative. */
function withValues(
  issue: z.core.$ZodIssue,
  branches: readonly (readonly z.core.$ZodIssue[])[],
): z.core.$ZodIssue {
  if (issue.code !== "invalid_value") return issue
  const name = nameOf(issue.path)
  const values = branches
    .flat()
    .flatMap((other) => (other.code === "invalid_value" && nameOf(other.path) === name ? other.values : []))
  return { ...issue, values: [...new Set(values)] }
}

/** Formats a path as in a config, such as `plugin[0]` or `mcp.a.command`. */
function nameOf(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => (typeof step === "number" ? `[${step}]` : `${index > 0 ? "." : ""}${String(step)}`))
    .join("")
}

function suggestion(checked: Checked, path: Path, key: string): string {
  const { keys, below } = schemaAt(checked, path)
  const [near] = nearNames(key, keys, Math.ceil(key.length / 3))
  if (near) return ` Did you mean "${near}"?`
  const holder = [...below].find(([, names]) => names.includes(key))?.[0]
  if (holder !== undefined) return ` It belongs in "${nameOf([...path, holder])}".`
  const known = keys.filter((name) => name !== "$schema")
  return known.length > 0 ? ` Known keys: ${known.join(", ")}.` : ""
}

/**
 * Describes an invalid value: what was expected, what kind of value was found, and, if known, how to correct it. Never
 * includes string values from the file, which could be secrets. `description` is the schema's text for the key.
 */
function describeIssue(
  issue: z.core.$ZodIssue,
  { name, found, description }: { name: string; found: ConfigNode | undefined; description?: string },
): string {
  const expected = alternatives([...new Set(expectations(issue))])
  const more = remedy(issue, found) ?? (description ? ` ${description}.` : "")
  if (issue.code === "invalid_key") return `${name}: the key must be ${expected}.`
  if (found === undefined) return `${name} is missing: expected ${expected}.${more}`
  const named = valuesOf(issue).length > 0 || issue.code === "invalid_format"
  const words = { named, number: isOutOfRange(issue) }
  return `${name}: expected ${expected}, found ${foundWords(found, words)}.${more}`
}

/** Describes the kind of a value. With `named`, another string was expected, and with `number`, another number. */
export function foundWords(node: ConfigNode, { named = false, number = false } = {}): string {
  if (node.kind === "array") return node.items.length === 0 ? "an empty list" : "a list"
  if (node.kind === "object") return node.entries.length === 0 ? "an empty object" : "an object"
  if (typeof node.value === "number" && !number) return "a number"
  if (typeof node.value !== "string") return String(node.value)
  return node.value === "" ? "an empty string" : named ? "another string" : "a string"
}

/** Formats a list of alternatives, such as `"a", "b" or "c"`. */
function alternatives(words: readonly string[]): string {
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
    case "invalid_key":
      return issue.issues.flatMap(expectations)
    case "too_small":
      return [boundWords(issue.origin, issue.minimum, issue.inclusive === false ? "above" : "of at least")]
    case "too_big":
      return [boundWords(issue.origin, issue.maximum, issue.inclusive === false ? "below" : "of at most")]
    case "invalid_format":
      if (issue.format === "url") return ["a URL that starts with http:// or https://"]
  }
  return [issue.message.replace(/^expected /, "")]
}

function boundWords(origin: string, bound: number | bigint, words: string): string {
  const items = Number(bound)
  if (origin === "string") return items === 1 ? "a non-empty string" : `a string ${words} ${items} characters`
  if (origin === "array") return items === 1 ? "a non-empty list" : `a list ${words} ${items} items`
  return `a number ${words} ${items}`
}

function isOutOfRange(issue: z.core.$ZodIssue): boolean {
  return issue.code === "too_small" || issue.code === "too_big" || wantedTypes(issue).includes("int")
}

/** Returns how to correct the value, or undefined if that is unknown. */
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
  return /\s/.test(value.trim()) ? ' Write a list of words: ["…", "…"].' : ' Write it in brackets: ["…"].'
}

function wantedTypes(issue: z.core.$ZodIssue): string[] {
  if (issue.code === "invalid_type") return [issue.expected]
  return issue.code === "invalid_union" ? issue.errors.flatMap((errors) => errors.flatMap(wantedTypes)) : []
}

/** Returns the strings that the schema accepts. */
function valuesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === "invalid_value") return issue.values.filter((value) => typeof value === "string")
  return issue.code === "invalid_union" ? issue.errors.flatMap((errors) => errors.flatMap(valuesOf)) : []
}

/** The schema at one path of a config file. */
export interface SchemaAt {
  description?: string
  /** Keys of the object. If the schema has alternatives, the keys of those that do not contradict the file. */
  keys: string[]
  /** Keys one level below, by parent key. */
  below: Map<string, string[]>
}

/** Looks up a path in the JSON Schema. Uses the tree to choose between alternatives. */
function schemaAt({ tree, json }: Checked, path: Path): SchemaAt {
  let shapes = [json()]
  for (const [depth, step] of path.entries()) {
    const node = nodeAt(tree, path.slice(0, depth))
    shapes = shapes.flatMap((shape) => shapesOf(shape, node)).flatMap((shape) => childrenOf(shape, step))
  }
  const description = shapes.map((shape) => shape.description).find((text) => typeof text === "string")
  const properties = shapes.flatMap((shape) => shapesOf(shape, nodeAt(tree, path))).flatMap(propertiesOf)
  const below = properties.map(
    ([key, shape]) =>
      [
        key,
        shapesOf(shape, undefined)
          .flatMap(propertiesOf)
          .map(([name]) => name),
      ] as const,
  )
  return {
    description,
    keys: [...new Set(properties.map(([key]) => key))],
    below: new Map(below),
  }
}

type Shape = Record<string, unknown>

/**
 * Returns the alternatives of a shape that do not contradict the node, for example in the value of `type`. If all of
 * them contradict the node, returns all.
 */
function shapesOf(shape: Shape, node: ConfigNode | undefined): Shape[] {
  const choices = [shape.anyOf, shape.oneOf, shape.allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  if (choices.length === 0) return [shape]
  const all = choices.filter(isRecord).flatMap((choice) => shapesOf(choice, node))
  const fitting = all.filter((choice) =>
    propertiesOf(choice).every(([key, value]) => agrees(value, nodeAt(node, [key]))),
  )
  return fitting.length > 0 ? fitting : all
}

function agrees(shape: Shape, node: ConfigNode | undefined): boolean {
  return node?.kind !== "scalar" || shape.const === undefined || shape.const === node.value
}

function propertiesOf(shape: Shape): [string, Shape][] {
  if (!isRecord(shape.properties)) return []
  return Object.entries(shape.properties).flatMap(([key, value]) => (isRecord(value) ? [[key, value]] : []))
}

function childrenOf(shape: Shape, step: string | number): Shape[] {
  const own = propertiesOf(shape).find(([key]) => key === step)?.[1]
  return [own ?? shape.additionalProperties ?? shape.items].filter(isRecord)
}
