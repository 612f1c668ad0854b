import type * as z from "zod"
import { nearNames } from "../model/near-name.ts"
import { isRecord } from "../util/json.ts"
import type { Problem } from "./errors.ts"
import { type ConfigNode, type ObjectNode, type Path, placeOf, toPlain, without } from "./node.ts"
import { configJsonSchema, configSchema } from "./schema.ts"

/** A {@link Problem} with the path of what is wrong. `unknown`: a key that the schema does not have. */
export interface TreeProblem extends Problem {
  path: Path
  unknown: boolean
}

/** Everything in a file's tree that the schema refuses, in the order of the text. `permission` has been taken out. */
export function checkTree(tree: ObjectNode): TreeProblem[] {
  // A config is checked once in a process: compiling the schema for it would take longer than the check.
  const schema = configSchema(tree.entries.map(({ key }) => key))
  const result = schema.safeParse(toPlain(tree), { jitless: true })
  const issues = result.success ? [] : result.error.issues
  return [...reservedKeys(tree, []), ...issues.flatMap((issue) => toProblems(tree, issue))].sort(
    (a, b) => a.place.line - b.place.line || a.place.column - b.place.column,
  )
}

/** The tree without what the schema refuses, and what that was. For files that were written for another program. */
export function pruneTree(tree: ObjectNode): { tree: ObjectNode; dropped: TreeProblem[] } {
  const dropped: TreeProblem[] = []
  let current = tree
  for (;;) {
    const problems = checkTree(current)
    if (problems.length === 0) return { tree: current, dropped }
    dropped.push(...problems)
    const paths = problems.map(({ path }) => existingPath(current, path))
    // From the back, so that the indices of lists stay true.
    for (const path of paths.reverse()) current = without(current, path)
  }
}

/** A required key that is missing cannot be taken out: then what should hold it goes. */
function existingPath(tree: ObjectNode, path: Path): Path {
  let end = path.length
  while (end > 1 && !exists(tree, path.slice(0, end))) end -= 1
  return path.slice(0, end)
}

function exists(tree: ConfigNode, path: Path): boolean {
  const [step, ...rest] = path
  if (step === undefined) return true
  const next =
    tree.kind === "array"
      ? tree.items[Number(step)]
      : tree.kind === "object"
        ? tree.entries.find((entry) => entry.key === step)?.value
        : undefined
  return next !== undefined && exists(next, rest)
}

/** The schema library passes over this one name in records; as a key it is only ever an attack. */
function reservedKeys(node: ConfigNode, path: Path): TreeProblem[] {
  if (node.kind === "array") return node.items.flatMap((item, index) => reservedKeys(item, [...path, index]))
  if (node.kind === "scalar") return []
  return node.entries.flatMap(({ key, place, value }) => {
    const here = [...path, key]
    if (key !== "__proto__" || path.length === 0) return reservedKeys(value, here)
    return [{ place, path: here, unknown: true, text: `${here.join(".")}: this key is not allowed.` }]
  })
}

function toProblems(tree: ObjectNode, issue: z.core.$ZodIssue): TreeProblem[] {
  const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step))
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const here = [...path, key]
      const text = `unknown key "${here.join(".")}".${suggestion(path, key)}`
      return { place: placeOf(tree, here), path: here, unknown: true, text }
    })
  }
  const meant = issue.code === "invalid_union" ? branchMeant(issue.errors) : undefined
  if (meant) {
    return meant.flatMap((inner) => toProblems(tree, { ...inner, path: [...issue.path, ...inner.path] }))
  }
  const text = `${path.join(".")}: ${expectation(issue)}.`
  return [{ place: placeOf(tree, path), path, unknown: false, text }]
}

/**
 * Of several shapes of an object the one that was meant: that with the fewest keys it does not know, then with the
 * fewest problems. Undefined where that is none or more than one.
 */
function branchMeant(
  branches: readonly (readonly z.core.$ZodIssue[])[],
): readonly z.core.$ZodIssue[] | undefined {
  const [first, second] = branches
    // A problem of the value as a whole: it is no object of this shape at all.
    .filter((issues) => issues.every(({ code, path }) => path.length > 0 || code === "unrecognized_keys"))
    .sort((a, b) => distance(a) - distance(b))
  return first && second && distance(first) === distance(second) ? undefined : first
}

function distance(issues: readonly z.core.$ZodIssue[]): number {
  const unknown = issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []))
  return unknown.length * 1000 + issues.length
}

/** What would have been right. Never what was there. */
function expectation(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_type") return `expected ${issue.expected}`
  if (issue.code === "invalid_value")
    return `expected ${issue.values.map((v) => JSON.stringify(v)).join(" or ")}`
  if (issue.code === "invalid_union") {
    const branches = issue.errors.flatMap((errors) => errors.map((error) => expectation(error)))
    return [...new Set(branches)].join(", or ")
  }
  const message = issue.message
  return message.charAt(0).toLowerCase() + message.slice(1)
}

function suggestion(path: Path, key: string): string {
  const known = knownKeys(path)
  const [near] = nearNames(key, known, Math.ceil(key.length / 3))
  if (near) return ` Did you mean "${near}"?`
  return known.length > 0 ? ` Known here: ${known.filter((name) => name !== "$schema").join(", ")}.` : ""
}

/** The keys that the schema has for the object at `path`. */
function knownKeys(path: Path): string[] {
  let schema: unknown = configJsonSchema()
  for (const step of path) {
    if (!isRecord(schema)) return []
    const properties = isRecord(schema.properties) ? schema.properties : {}
    schema = Object.hasOwn(properties, step)
      ? properties[step]
      : (schema.additionalProperties ?? schema.items)
  }
  return isRecord(schema) && isRecord(schema.properties) ? Object.keys(schema.properties) : []
}
