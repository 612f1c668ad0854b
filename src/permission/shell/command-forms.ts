import { accessSync, constants } from "node:fs"
import { basename, isAbsolute, join, normalize } from "node:path"
import type { Rule } from "../../schema/permission.ts"
import { isInside } from "../../util/paths.ts"
import { wildcardCovers, wildcardMatch } from "../../util/wildcard.ts"
import type { ResolvedScope } from "../path-checks.ts"
import type { JudgeOptions } from "../policy.ts"
import { crudeForms } from "./crude-forms.ts"
import { gnuName } from "./program-table.ts"
import { namesRisk, risksOf } from "./risks.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import type { Word } from "./words.ts"

/** What is known of the place where commands run. */
export interface CommandScope extends ResolvedScope {
  home: string
  /** Where programs are looked for, in order. None where all of them lie elsewhere than in the worktree. */
  programDirectories: readonly string[]
}

/** The place as its commands see it. `searchPath` is their `PATH`, where it is known. */
export function commandScope(
  scope: ResolvedScope,
  home: string,
  searchPath: string | undefined,
): CommandScope {
  const directories = searchPath?.split(":") ?? []
  const mayShadow = directories.some((each) => !isAbsolute(each) || isOf(scope, each))
  // The usual case costs no look at the disk.
  return { ...scope, home, programDirectories: mayShadow ? directories : [] }
}

function isOf({ worktree, realWorktree }: ResolvedScope, directory: string): boolean {
  return isInside(directory, worktree) || isInside(directory, realWorktree)
}

/** How rules see a command: its spellings, and what an allow needs. */
export interface CommandForms {
  forms: string[]
  options: JudgeOptions
  /** It is called by its plain name or from a system directory, so a rule for the name means this program. */
  genuine: boolean
  reason?: string
}

/** Programs from here are what their names say. */
const systemDirectories = ["/bin", "/usr/bin", "/usr/local/bin"]

/** The spellings of a planned command. */
export function commandForms(command: PlannedCommand, scope: CommandScope): CommandForms {
  const { argv, opaque } = command
  const [program, ...words] = argv
  const written = program ? expandWord(program, scope.home) : ""
  const path = shadowingPath(written, scope) ?? written
  const name = basename(path)
  const rest = [words.map((word) => word.text), words.map((word) => expandWord(word, scope.home))]
  const spell = (first: string) => [...new Set(rest.map((tail) => [first, ...tail].join(" ")))]

  const genuine = isGenuine(path)
  const forms = genuine ? [...spell(path), ...spell(name)] : spell(path)
  const options: JudgeOptions = {
    // On some file systems the case of a program's name makes no difference.
    denyForms: [...command.denyForms, ...spell(name), ...spell(name.toLowerCase())],
  }
  const others = otherSpellings(name, words)
  const risks = risksOf(name, words)
  const within = risks.length > 0 ? words.flatMap((word) => commandsWithin(word.text)) : []
  const straight = words.map((word) => straighten(expandWord(word, scope.home))).join(" ")
  const straightForms = [path, name].map((first) => [first, straight].join(" "))
  options.denyForms = [...(options.denyForms ?? []), ...others, ...within, ...straightForms]
  const unknown = argv.some((word) => word.dynamic || word.glob)
  if (opaque !== undefined) {
    options.counts = coversAll
    options.span = "*"
  } else {
    if (risks.length > 0) {
      options.counts = (rule) => coversAll(rule) || risks.every((group) => namesRisk(rule.pattern, group))
    }
    if (words.some(({ text }) => climbs.test(text))) {
      const { counts = () => true } = options
      options.counts = (rule) => counts(rule) && reaches(rule, straightForms)
    }
    if (unknown) options.span = argv.map((word) => word.span).join(" ")
  }
  const reason =
    opaque ?? (risks.length > 0 ? `${name} can run a program or write a file this way` : undefined)
  return { forms: [...new Set(forms)], options, genuine, ...(reason === undefined ? {} : { reason }) }
}

/** A step back within a path: `build/../src`. */
const climbs = /[^/]\/+(?:\.\/+)*\.\.(?:\/|$)/

/**
 * True where a rule means the command also without its steps back: `rm build/*` does not mean `rm build/../src`. A rule
 * that names steps back means them, and one without wildcards means what it says.
 */
function reaches({ pattern }: Rule, straightForms: readonly string[]): boolean {
  if (pattern.includes("..") || !/[*?]/.test(pattern)) return true
  return straightForms.some((form) => wildcardMatch(form, pattern))
}

/** The path that a word is, without steps that lead nowhere or back. */
function straighten(text: string): string {
  return text.includes("/") && !text.includes("://") ? normalize(text) : text
}

/** True for rules without any limit on the pattern. */
export function coversAll(rule: Rule): boolean {
  return wildcardCovers(rule.pattern, "*")
}

/** The word with a leading home directory written out. */
export function expandWord(word: Word, home: string): string {
  return word.base === "home" ? `${home}${word.tail ?? ""}` : word.text
}

/**
 * The same command as a deny may name it: without the options in front of its subcommand, whose values cannot be told
 * from it, and by the name that the program is also known by.
 */
function otherSpellings(name: string, words: readonly Word[]): string[] {
  const plain = gnuName(name.replace(/^=/, "").replace(/\.exe$/i, ""))
  const texts = words.map((word) => word.text)
  const spellings = plain === name ? [] : [[plain, ...texts].join(" ")]
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

/** More options do not stand in front of a subcommand. */
const maxLeadingOptions = 24

/**
 * The name under which the tables may know a program. One that lies elsewhere than the system's has its whole path, which
 * is in none of them: a copy of another program under the name of `ls` does what that one does.
 */
export function tableName(program: Word, scope: CommandScope): string {
  const written = expandWord(program, scope.home)
  const path = shadowingPath(written, scope) ?? written
  return isGenuine(path) ? basename(path) : path
}

/** What a word that holds a program's text, or names what to run, may hold of commands. */
function commandsWithin(text: string): string[] {
  return /[\s=!:'"+,]/.test(text) ? crudeForms(text.replaceAll(/[=!:"'+,[\]]/g, "\n")) : []
}

function isGenuine(path: string): boolean {
  if (isAbsolute(path)) return systemDirectories.some((directory) => path === join(directory, basename(path)))
  return /^[\w.+[-][\w.+-]*$/.test(path) && path !== "." && path !== ".."
}

/**
 * The path behind a plain name that is found in the worktree, or relative to wherever the command runs, before
 * anywhere else: rules for the name mean another program.
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
    // Whatever the reason, the shell cannot run it either and looks further.
    return false
  }
}
