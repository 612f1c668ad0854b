import { resolve } from "node:path"
import { displayPath } from "../util/paths.ts"
import { counted } from "../util/words.ts"
import { checkTree, pruneTree, type TreeProblem } from "./check.ts"
import type { ConfigFile } from "./config-files.ts"
import { byPosition, describeProblem, type Problem } from "./errors.ts"
import { instructionsDirectory, keepOwnInstructions, resolveInstructions } from "./instructions.ts"
import type { Location } from "./location.ts"
import { markdownDefinition } from "./markdown-files.ts"
import { filterEntries, nodeAt, type ObjectNode, type Path, withoutRepeats } from "./node.ts"
import { parseConfig } from "./parse.ts"
import { brokenExamples, type FileRules, isRuleLike, isRuleSection, takeRules } from "./rules.ts"
import { sectionNames, userSections } from "./schema.ts"
import { type FileReader, type SubstitutionContext, substitute } from "./substitute.ts"

/** The text of a config source before parsing. */
export interface ConfigSource extends Pick<ConfigFile, "path" | "kind" | "scope"> {
  text: string
  /** SHA-256 in hex of the file's bytes. Empty for a source that is not a file. */
  hash: string
  /** Whether the source is trusted. The user's own sources always are. */
  trusted: boolean
  /** Reads the files that the text includes. By default, reads them from disk. */
  read?: FileReader
}

/** The contribution of a parsed source to the merged config. */
export interface ConfigLayer {
  source: ConfigSource
  /** The valid settings, without `permission` and `$schema`. */
  tree: ObjectNode
  rules: FileRules
  warnings: string[]
  /** Problems in settings that are ignored until the project is trusted. They are not fatal. */
  typos: Problem[]
  /**
   * Fatal problems, in text order. `tree` excludes the sections or settings that have problems. In another program's
   * file, only problems in settings that may limit an agent are fatal.
   */
  problems: Problem[]
  /** The settings that are ignored because the project is not trusted, such as `provider` or `allow rules`. */
  ignored: string[]
}

/**
 * Parses one source and checks it. Replaces the placeholders in a trusted config file. Throws `ConfigError` if the text
 * cannot be parsed.
 */
export async function readLayer(source: ConfigSource, location: Location): Promise<ConfigLayer> {
  const { path, text, trusted, kind, read } = source
  const parsed = await parseConfig(path, text)
  const directory = resolve(location.directory, instructionsDirectory(path))
  const warnings: string[] = []
  const warn = (warning: string) => warnings.push(warning)
  for (const note of parsed.notes) warn(describeProblem(note))
  const written = filterEntries(parsed.tree, (entry) => {
    if (entry.key === "$schema") return undefined
    if (source.scope !== "project" || !userSections.includes(entry.key)) return entry
    const text = `${entry.key} has no effect in a project. Set it in your own config.`
    warn(describeProblem({ position: entry.position, text }))
    return undefined
  })

  const counted: Counted = !trusted
    ? restrict(written, { worktree: location.worktree, directory })
    : markdownDefinition(path)
      ? { tree: written, ignored: [], problems: [] }
      : substituteSections(written, { ...location, read }, warn)
  const { rest, rules, problems } = takeRules(counted.tree)
  // Omits unknown keys in Tackle's own files, which `typosIn` reports.
  const known = counted.ignored.filter(
    (name) => kind !== "tackle" || name.includes(" ") || sectionNames.includes(name),
  )
  const ignored = !trusted && allowsAnything(rules) ? [...known, "allow rules"] : known
  // Untrusted rules only restrict, so their examples are not checked.
  const broken = trusted
    ? await brokenExamples(rules, { home: location.home, ofProject: source.scope === "project" })
    : []
  const values = withoutRepeats(rest)
  const checked =
    kind === "tackle"
      ? strict(values, [...counted.problems, ...problems, ...broken])
      : lenient(values, [...counted.problems, ...problems], {
          name: displayPath(path, location.worktree),
          warn,
        })
  if (kind !== "tackle") for (const problem of broken) warn(describeProblem(problem))
  const typos = !trusted && kind === "tackle" ? typosIn(written, counted.ignored) : []
  const isWrong = checked.problems.length > 0
  return {
    source,
    tree: resolveInstructions(checked.tree, { directory, home: location.home }),
    rules,
    warnings,
    typos: isWrong ? [] : typos,
    problems: isWrong ? [...checked.problems, ...typos].sort(byPosition) : [],
    ignored,
  }
}

/** A file's settings that take effect. */
interface Counted {
  tree: ObjectNode
  ignored: string[]
  problems: Problem[]
}

/** Returns the whole file after substitution. */
function substituteSections(
  tree: ObjectNode,
  around: SubstitutionContext,
  warn: (warning: string) => void,
): Counted {
  const problems: Problem[] = []
  const filled = filterEntries(tree, (entry) => {
    const fail = (problem: Problem) => problems.push({ ...problem, section: entry.key })
    return { ...entry, value: substitute(entry.value, around, { warn, fail }) }
  })
  return { tree: filled, ignored: [], problems }
}

/** Limits on the reported problems in an untrusted file, so that a hostile file cannot flood the output. */
const maxTypos = 5
const maxTypoLength = 400

/**
 * Returns the errors that ignored keys would cause in a trusted file, because users look for a typo before they think
 * of trust. Skips values with `{env:…}` or `{file:…}`, because these are not known yet.
 */
function typosIn(tree: ObjectNode, ignored: readonly string[]): Problem[] {
  const { rest } = takeRules(
    filterEntries(tree, (entry) => (ignored.includes(entry.key) ? entry : undefined)),
  )
  const values = withoutRepeats(rest)
  const typos = checkTree(values).filter(({ path, unknown }) => {
    if (unknown) return true
    const found = nodeAt(values, path)
    return found?.kind !== "scalar" || !/\{(?:env|file):/.test(String(found.value))
  })
  return typos.slice(0, maxTypos).map(({ position, path, text }, index) => {
    const short = text.length > maxTypoLength ? `${text.slice(0, maxTypoLength)}…` : text
    const more = index + 1 === maxTypos ? typos.length - maxTypos : 0
    return {
      position,
      section: sectionOf(path),
      text: more > 0 ? `${short} (And ${counted(more, "more problem")}.)` : short,
    }
  })
}

/**
 * Removes everything that an untrusted project's file may not set. Rules, and instructions inside the project, remain.
 */
function restrict(tree: ObjectNode, project: { worktree: string; directory: string }): Counted {
  const ignored = new Set<string>()
  const kept = filterEntries(tree, (entry) => {
    const isUnknownRule = isRuleLike(entry.key) && !sectionNames.includes(entry.key)
    if (entry.key === "instructions" || isRuleSection(entry.key) || isUnknownRule) return entry
    ignored.add(entry.key)
    return undefined
  })
  const own = keepOwnInstructions(kept, project)
  if (own.dropped) ignored.add("some instructions")
  return { tree: own.tree, ignored: [...ignored], problems: [] }
}

function allowsAnything({ permission }: FileRules): boolean {
  return permission.some(({ action }) => action === "allow")
}

/** Checks one of Tackle's own files. Returns every problem, and the tree without the sections that have problems. */
function strict(
  tree: ObjectNode,
  problems: readonly Problem[],
): { tree: ObjectNode; problems: readonly Problem[] } {
  const wrong = checkTree(tree).map(({ position, path, text }) => ({
    position,
    section: sectionOf(path),
    text,
  }))
  const all = [...problems, ...wrong].sort(byPosition)
  const sections = new Set(all.map(({ section }) => section))
  return {
    tree: filterEntries(tree, (entry) => (sections.has(entry.key) ? undefined : entry)),
    problems: all,
  }
}

function sectionOf([first]: Path): string {
  return String(first)
}

/**
 * Checks another program's file. Removes unsupported settings and warns about them. Returns the problems in settings
 * that may limit an agent, because without these settings the agent could do more than intended.
 */
function lenient(
  tree: ObjectNode,
  problems: readonly Problem[],
  report: { name: string; warn: (warning: string) => void },
): { tree: ObjectNode; problems: readonly Problem[] } {
  const pruned = pruneTree(tree)
  const limits = pruned.dropped.filter(mayLimit).map(({ position, path, text, unknown }) => ({
    position,
    section: sectionOf(path),
    text: unknown
      ? `Tackle does not understand "${path.join(".")}", which may limit what an agent can do. Write rules under "permission", or remove the key.`
      : text,
  }))
  const others = pruned.dropped.filter((problem) => !mayLimit(problem))
  for (const problem of others) {
    if (problem.unknown) continue
    const ignored = nodeAt(tree, problem.path) === undefined ? "object" : "value"
    report.warn(`${describeProblem(problem)} The ${ignored} is ignored.`)
  }
  const unknown = others.filter((problem) => problem.unknown).map(({ path }) => path.join("."))
  if (unknown.length > 0) report.warn(`${report.name}: Tackle does not use ${unknown.join(", ")}.`)
  return { tree: pruned.tree, problems: [...problems, ...limits].sort(byPosition) }
}

/** Returns true if the rejected setting may limit what an agent can do. */
function mayLimit({ path, unknown }: TreeProblem): boolean {
  const [section, , field] = path
  if (unknown) return isRuleLike(String(path.at(-1)))
  if (section === "tools") return true
  if (section === "agent") return field === "tools" || field === "disable"
  return section === "mcp" && field === "enabled"
}
