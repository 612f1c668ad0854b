import { resolve } from "node:path"
import { displayPath } from "../util/paths.ts"
import { checkTree, pruneTree } from "./check.ts"
import type { ConfigFile } from "./config-files.ts"
import { ConfigError, describeProblem, type Problem } from "./errors.ts"
import { instructionsDirectory, keepOwnInstructions, resolveInstructions } from "./instructions.ts"
import type { Location } from "./location.ts"
import { markdownPlace } from "./markdown-place.ts"
import { filterEntries, nodeAt, type ObjectNode, withoutRepeats } from "./node.ts"
import { parseConfig } from "./parse.ts"
import { brokenExamples } from "./rule-examples.ts"
import { type FileRules, takeRules } from "./rules.ts"
import { sectionNames } from "./schema.ts"
import { wholeName } from "./shown-name.ts"
import { type FileReader, substitute } from "./substitute.ts"

/** A config text that was found, before anyone looked into it. */
export interface ConfigSource extends Pick<ConfigFile, "path" | "kind" | "scope"> {
  text: string
  /** sha256 of the bytes. */
  hash: string
  /** False: of a project that is not trusted. */
  trusted: boolean
  /** Gives the files that it may put in. Absent: as they are on the disk. */
  read?: FileReader
}

/** A source, understood: what it adds to the merged config. */
export interface ConfigLayer {
  source: ConfigSource
  /** Checked values, without `permission` and `$schema`. */
  tree: ObjectNode
  rules: FileRules
  warnings: string[]
  /** Keys that do not count because the project is not trusted. */
  ignored: string[]
}

/** Parses, substitutes and checks one source. Throws {@link ConfigError}. */
export async function readLayer(source: ConfigSource, location: Location): Promise<ConfigLayer> {
  const { path, text, trusted, kind, read } = source
  const parsed = await parseConfig(path, text)
  const written = filterEntries(parsed.tree, (entry) => (entry.key === "$schema" ? undefined : entry))
  const directory = resolve(location.directory, instructionsDirectory(path))
  const warnings: string[] = []
  const warn = (warning: string) => warnings.push(warning)
  for (const note of parsed.notes) warn(describeProblem(note))

  const counted = trusted
    ? {
        tree: markdownPlace(path)
          ? written
          : substitute(written, { ...location, ...(read ? { read } : {}) }, warn),
        ignored: [],
      }
    : restrict(written, { worktree: location.worktree, directory })
  if (!trusted && kind === "tackle") for (const typo of typosIn(written, counted.ignored)) warn(typo)
  const { rest, rules, problems } = takeRules(counted.tree)
  // What nobody knows would not count with trust either.
  const known = counted.ignored.filter(
    (name) => kind !== "tackle" || name.includes(" ") || sectionNames.includes(name),
  )
  const ignored = !trusted && allowsAnything(rules) ? [...known, "rules that allow"] : known
  // An untrusted file's rules only tighten: what its author expects of them cannot be held against them.
  const broken = trusted
    ? await brokenExamples(rules, { home: location.home, ofProject: source.scope === "project" })
    : []
  const values = withoutRepeats(rest)
  const tree =
    kind === "tackle"
      ? strict(values, [...problems, ...broken])
      : lenient(values, problems, { name: displayPath(path, location.worktree), warn })
  if (kind !== "tackle") for (const problem of broken) warn(describeProblem(problem))
  return {
    source,
    tree: resolveInstructions(tree, { directory, home: location.home }),
    rules,
    warnings,
    ignored,
  }
}

/**
 * More mistakes of a file that nobody vouches for, and longer words, are not told: they must not bury what else there
 * is to read.
 */
const maxTypos = 5
const maxTypoLength = 400

/**
 * What would be an error if the file were trusted, of the keys that do not count before: a person looks for their typo,
 * not for trust. What is put in by `{env:…}` and `{file:…}` is not known yet.
 */
function typosIn(tree: ObjectNode, ignored: readonly string[]): string[] {
  const { rest } = takeRules(
    filterEntries(tree, (entry) => (ignored.includes(entry.key) ? entry : undefined)),
  )
  const values = withoutRepeats(rest)
  const typos = checkTree(values).filter(({ path, unknown }) => {
    if (unknown) return true
    const found = nodeAt(values, path)
    return found?.kind !== "scalar" || !/\{(?:env|file):/.test(String(found.value))
  })
  const more = typos.length > maxTypos ? [`${typos.length - maxTypos} more mistakes there.`] : []
  const told = typos.slice(0, maxTypos).map(({ place, text }) => {
    const short = text.length > maxTypoLength ? `${text.slice(0, maxTypoLength)}…` : text
    return wholeName(describeProblem({ place, text: short }))
  })
  return [...told, ...more]
}

/** All that counts of a project's file before the person trusts it: instructions of its own, and rules. */
function restrict(
  tree: ObjectNode,
  project: { worktree: string; directory: string },
): { tree: ObjectNode; ignored: string[] } {
  const ignored = new Set<string>()
  const kept = filterEntries(tree, (entry) => {
    if (entry.key === "instructions" || entry.key === "permission") return entry
    ignored.add(entry.key)
    return undefined
  })
  const own = keepOwnInstructions(kept, project)
  if (own.dropped) ignored.add("some instructions")
  return { tree: own.tree, ignored: [...ignored] }
}

function allowsAnything({ permission }: FileRules): boolean {
  return permission.some(({ action }) => action === "allow")
}

/** Tackle's own file: every problem at once, as an error. */
function strict(tree: ObjectNode, problems: readonly Problem[]): ObjectNode {
  const all = [...problems, ...checkTree(tree)]
  if (all.length > 0) throw new ConfigError(all)
  return tree
}

/** Another program's file: what Tackle does not understand goes, with a warning. */
function lenient(
  tree: ObjectNode,
  problems: readonly Problem[],
  report: { name: string; warn: (warning: string) => void },
): ObjectNode {
  const pruned = pruneTree(tree)
  for (const problem of problems) report.warn(`${describeProblem(problem)} Taken as "ask".`)
  for (const problem of pruned.dropped) {
    if (!problem.unknown) report.warn(`${describeProblem(problem)} Ignored.`)
  }
  const unknown = pruned.dropped.filter((problem) => problem.unknown).map(({ path }) => path.join("."))
  if (unknown.length > 0) report.warn(`${report.name}: Tackle does not use ${unknown.join(", ")}.`)
  return pruned.tree
}
