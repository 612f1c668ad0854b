import type * as z from "zod"
import { nearNames } from "../util/similarity.ts"
import type { Problem } from "./errors.ts"
import { describeMistake } from "./mistake.ts"
import { type ConfigNode, nodeAt, type ObjectNode, type Path, placeOf, toPlain, without } from "./node.ts"
import { configSchema } from "./schema.ts"
import { schemaAt } from "./schema-at.ts"

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
  while (end > 1 && nodeAt(tree, path.slice(0, end)) === undefined) end -= 1
  return path.slice(0, end)
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
      const text = `unknown key "${nameOf(here)}".${suggestion(tree, path, key)}`
      return { place: placeOf(tree, here), path: here, unknown: true, text }
    })
  }
  const meant = issue.code === "invalid_union" ? branchMeant(issue.errors) : undefined
  if (meant) {
    return meant.flatMap((inner) => toProblems(tree, { ...inner, path: [...issue.path, ...inner.path] }))
  }
  const { description } = schemaAt(tree, path)
  const about = { name: nameOf(path), found: nodeAt(tree, path), ...(description ? { description } : {}) }
  const text = describeMistake(issue, about)
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
    .map((issues) => issues.map((issue) => withValues(issue, branches)))
    // A problem of the value as a whole: it is no object of this shape at all.
    .filter((issues) => issues.every(({ code, path }) => path.length > 0 || code === "unrecognized_keys"))
    .sort((a, b) => distance(a) - distance(b))
  return first && second && distance(first) === distance(second) ? undefined : first
}

function distance(issues: readonly z.core.$ZodIssue[]): number {
  const unknown = issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []))
  return unknown.length * 1000 + issues.length
}

/** A name that tells the shapes apart may be that of any of them. */
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

/** As a person writes it: `plugin[0]`, `mcp.a.command`. */
function nameOf(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => (typeof step === "number" ? `[${step}]` : `${index > 0 ? "." : ""}${String(step)}`))
    .join("")
}

function suggestion(tree: ObjectNode, path: Path, key: string): string {
  const { keys, below } = schemaAt(tree, path)
  const [near] = nearNames(key, keys, Math.ceil(key.length / 3))
  if (near) return ` Did you mean "${near}"?`
  const holder = [...below].find(([, names]) => names.includes(key))?.[0]
  if (holder !== undefined) return ` It belongs into "${nameOf([...path, holder])}".`
  const known = keys.filter((name) => name !== "$schema")
  return known.length > 0 ? ` Known here: ${known.join(", ")}.` : ""
}
