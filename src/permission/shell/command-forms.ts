import { accessSync, constants } from "node:fs"
import { basename, isAbsolute, join, normalize } from "node:path"
import type { Rule } from "../../schema/permission.ts"
import { isInside } from "../../util/paths.ts"
import { wildcardCovers, wildcardMatch } from "../../util/wildcard.ts"
import type { ResolvedScope } from "../path-checks.ts"
import type { JudgeOptions, Policy } from "../policy.ts"
import { codeForms } from "./possible-commands.ts"
import { findProgram, gnuName, namesWithoutVersion } from "./program-table.ts"
import { namesRisks, risksOf, riskValues } from "./risks.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import type { Word } from "./words.ts"

/** The scope of a request, and the search path for its commands. */
export interface CommandScope extends ResolvedScope {
  home: string
  /**
   * Directories in `PATH`, in order. Empty if `PATH` is unknown, or if all of them are absolute paths outside the
   * worktree.
   */
  programDirectories: readonly string[]
}

/** A command, and everything that its checks depend on. */
export interface CommandContext {
  command: PlannedCommand
  /** The name to look up in the program table. See {@link tableName}. */
  name: string
  /** The command's arguments. */
  words: readonly Word[]
  /** The absolute directories in which the command may run. Undefined if they are unknown. */
  directories: readonly string[] | undefined
  scope: CommandScope
  policy: Policy
}

/** Returns the scope with the search path for its commands. `searchPath` is the value of `PATH`, if known. */
export function commandScope(
  scope: ResolvedScope,
  home: string,
  searchPath: string | undefined,
): CommandScope {
  const directories = searchPath?.split(":") ?? []
  const mayShadow = directories.some((each) => !isAbsolute(each) || isOf(scope, each))
  // If no directory in `PATH` can contain project files, program names are resolved without disk access.
  return { ...scope, home, programDirectories: mayShadow ? directories : [] }
}

function isOf({ worktree, realWorktree }: ResolvedScope, directory: string): boolean {
  return isInside(directory, worktree) || isInside(directory, realWorktree)
}

/** The spellings of a command that rules match, and the conditions under which a rule can allow it. */
export interface CommandForms {
  forms: string[]
  options: JudgeOptions
  /**
   * Whether the command is called from a system directory, or by a plain name that does not resolve to a file in the
   * worktree. Otherwise, only deny rules for the name apply to the program.
   */
  genuine: boolean
  reason?: string
}

/** Directories whose programs are identified by their file names. */
const systemDirectories = ["/bin", "/usr/bin", "/usr/local/bin"]

/** Returns the spellings of a planned command and the conditions under which a rule can allow it. */
export function commandForms(command: PlannedCommand, scope: CommandScope): CommandForms {
  const { argv, opaque } = command
  const [program, ...words] = argv
  const written = program ? expandWord(program, scope.home) : ""
  const path = shadowingPath(written, scope) ?? written
  const name = basename(path)
  const rest = [words.map((word) => word.text), words.map((word) => expandWord(word, scope.home))]
  const spell = (first: string) => [...new Set(rest.map((tail) => [first, ...tail].join(" ")))]

  const genuine = isGenuine(path)
  const plainForms = genuine ? [...spell(path), ...spell(name)] : spell(path)
  const { assignments = [] } = command
  const assigned = assignments.length > 0 ? plainForms.map((form) => [...assignments, form].join(" ")) : []
  const forms = [...assigned, ...plainForms]
  const options: JudgeOptions = {
    // Some file systems ignore the case of file names.
    denyForms: [...command.denyForms, ...spell(name), ...spell(name.toLowerCase())],
  }
  const others = otherSpellings(name, words)
  const risks = [...assignments.map((text) => [text.split(/\+?=/, 1)[0] ?? text]), ...risksOf(name, words)]
  if (command.runsInput && (risks.length === 0 || command.inputUse === "fed")) risks.push(["-"])
  // `python3` without a script is the same command as `python3 -`.
  if (command.runsInput && !words.some(({ text }) => text === "-"))
    forms.push(...forms.map((form) => `${form} -`))
  const values = riskValues(name, words)
  const code = [...words.map(({ text }) => text), ...values].filter((text) => /[\s=!:'"+,]/.test(text))
  const texts = risks.length > 0 ? code : []
  const within = [...texts, command.code ?? ""].map(codeForms)
  const straight = words.map((word) => straighten(expandWord(word, scope.home))).join(" ")
  const straightForms = [path, name].map((first) => [first, straight].join(" "))
  options.denyForms = [
    ...(options.denyForms ?? []),
    ...others,
    ...values.flatMap((value) => [value, basename(value)]),
    ...within.flatMap((each) => each ?? []),
    ...straightForms,
  ]
  const unknown = argv.some((word) => word.dynamic || word.glob)
  const changesShell = assignments.length > 0 || (findProgram(name)?.builtin === "named" && risks.length > 0)
  if (opaque !== undefined) {
    options.counts = coversAll
    options.span = "*"
  } else {
    if (risks.length > 0) {
      options.counts = (rule) => coversAll(rule) || namesRisks(rule.pattern, risks)
    }
    if (words.some(({ text }) => climbs(text))) {
      const { counts = () => true } = options
      options.counts = (rule) => counts(rule) && reaches(rule, straightForms)
    }
    if (changesShell) {
      options.span = "*"
      options.namesSpan = ({ pattern }) => namesRisks(pattern, risks)
    } else if (unknown) options.span = argv.map((word) => word.span).join(" ")
    // The search for commands was incomplete, so only `*` can allow the command.
    if (within.includes(undefined)) options.span = "*"
  }
  const reason = opaque ?? reasonOf({ name, assignments, risks })
  return { forms: [...new Set(forms)], options, genuine, reason }
}

function reasonOf(command: {
  name: string
  assignments: readonly string[]
  risks: readonly string[][]
}): string | undefined {
  const { name, assignments, risks } = command
  if (assignments[0] !== undefined)
    return `it sets ${assignments[0].split("=", 1)[0]}, which can change what ${name} does`
  if (risks.length === 0) return undefined
  return findProgram(name)?.builtin === "named"
    ? `${name} changes the meaning of later commands`
    : risks.every((group) => group.includes("-"))
      ? `${name} runs code from its input`
      : `${name} can run a program or write a file with these arguments`
}

/** Returns true for a path with `..` after another segment, such as `build/../src`. */
function climbs(text: string): boolean {
  const segments = text.split("/").filter((segment) => segment !== "")
  return segments.includes("..", 1)
}

/**
 * Returns true if a rule also matches the command after each `..` is resolved: `rm build/*` does not allow `rm
 * build/../src`. Also returns true if the rule contains `..` or no wildcards.
 */
function reaches({ pattern }: Rule, straightForms: readonly string[]): boolean {
  if (pattern.includes("..") || !/[*?]/.test(pattern)) return true
  return straightForms.some((form) => wildcardMatch(form, pattern))
}

/** Normalizes a word that is a path. Returns other words unchanged. */
function straighten(text: string): string {
  return text.includes("/") && !text.includes("://") ? normalize(text) : text
}

/** Returns true for a rule whose pattern matches everything. */
export function coversAll(rule: Rule): boolean {
  return wildcardCovers(rule.pattern, "*")
}

/** Returns the word with `~` or `$HOME` expanded at its start. */
export function expandWord(word: Word, home: string): string {
  return word.base === "home" ? `${home}${word.tail ?? ""}` : word.text
}

/**
 * Returns other spellings of the command, which only deny rules can match: without options before the subcommand,
 * because it is unknown which options take values, and with other names for the program.
 */
function otherSpellings(name: string, words: readonly Word[]): string[] {
  const named = gnuName(name.replace(/^=/, "").replace(/\.exe$/i, ""))
  const others = namesWithoutVersion(named.toLowerCase())
  const plain = others[0] ?? named
  const texts = words.map((word) => word.text)
  const spellings = [named, ...others]
    .filter((each) => each !== name)
    .map((each) => [each, ...texts].join(" "))
  const subcommand = /^git-(.+)$/.exec(plain)?.[1]
  if (subcommand !== undefined) spellings.push(["git", subcommand, ...texts].join(" "))
  for (let at = 0; at < texts.length && at < maxLeadingOptions; at++) {
    if (!texts[at]?.startsWith("-")) break
    const next = texts[at + 1]
    spellings.push([plain, ...texts.slice(at + 1)].join(" "))
    if (next === undefined || next.startsWith("-")) continue
    spellings.push([plain, ...texts.slice(at + 2)].join(" "))
    at += 1
  }
  return spellings
}

/** Maximum number of options to omit before a subcommand. */
const maxLeadingOptions = 24

/**
 * Returns the name to look up in the program table. For a program outside the system directories, returns the whole
 * path, which is not in the table. In another directory, a program with a known name such as `ls` could be a different
 * program.
 */
export function tableName(program: Word, scope: CommandScope): string {
  const written = expandWord(program, scope.home)
  const path = shadowingPath(written, scope) ?? written
  return isGenuine(path) ? basename(path) : path
}

function isGenuine(path: string): boolean {
  if (isAbsolute(path)) return systemDirectories.some((directory) => path === join(directory, basename(path)))
  return /^(?:\[\[|[\w.+[-][\w.+-]*)$/.test(path) && path !== "." && path !== ".."
}

/**
 * Returns the path to which a plain name resolves, if that path is in the worktree or in a relative directory in
 * `PATH`. Rules for the plain name are meant for a different program.
 */
function shadowingPath(name: string, scope: CommandScope): string | undefined {
  if (name === "" || name.includes("/")) return undefined
  for (const directory of scope.programDirectories) {
    if (!isAbsolute(directory)) return `./${directory}/${name}`
    const path = join(directory, name)
    if (isExecutable(path)) return isOf(scope, directory) ? path : undefined
  }
  return undefined
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // The shell cannot run this file either, so it searches the next directory.
    return false
  }
}
