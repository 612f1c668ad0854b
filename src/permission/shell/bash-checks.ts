import { basename, isAbsolute, join } from "node:path"
import type { ResolvedScope } from "../path-checks.ts"
import { judge, type Policy } from "../policy.ts"
import type { Check, Scope, ScopeSandbox } from "../request.ts"
import { suggestPattern } from "./always-pattern.ts"
import {
  type CommandContext,
  type CommandForms,
  type CommandScope,
  commandForms,
  commandScope,
  coversAll,
  tableName,
} from "./command-forms.ts"
import {
  directoryChecks,
  mayShowProtectedFile,
  trackedFileChecks,
  wholeReadChecks,
} from "./directory-checks.ts"
import { codeChecks, commandFileChecks, plannedFileChecks } from "./file-checks.ts"
import { isPlainRepository } from "./git-repository.ts"
import { globFiles } from "./paths-in-words.ts"
import { maxCommandLength, planCommand } from "./plan-command.ts"
import { crudeForms } from "./possible-commands.ts"
import { isBuildTool } from "./program-table.ts"
import { isPlainGit, type Proof, proveReadOnly, showsContents } from "./read-only-proof.ts"
import { risksOf } from "./risks.ts"
import type { PlannedCommand, ShellPlan } from "./shell-plan.ts"
import type { Word } from "./words.ts"
import { writeChecks } from "./write-checks.ts"

/** Checks for a command text. `commands` contains each command with its `bash` check. */
export interface BashChecks {
  checks: Check[]
  commands: { command: PlannedCommand; check: Check; showsSecrets: boolean }[]
}

/** A command text and the rules that judge it. */
export interface BashRequest {
  text: string
  /** Absolute path of the initial working directory. */
  directory: string
  scope: Scope
  resolved: ResolvedScope
  policy: Policy
  /** Absolute path of the home directory, to which `~` expands. */
  home: string
  /** The sandbox in which the text runs if the sandbox works. Undefined if the text runs without a sandbox. */
  sandbox: ScopeSandbox | undefined
}

/** Returns a check for each command, and checks for the files that the commands name or the shell opens. */
export async function bashChecks(request: BashRequest): Promise<BashChecks> {
  const { text, directory, home, policy, sandbox } = request
  const scope = commandScope(request.resolved, home, request.scope.searchPath)
  const plan = await planCommand(text)
  const locate = (entry: { directories?: readonly string[] }) =>
    entry.directories?.map((name) => absoluteDirectory(name, directory, home))

  const contextOf = (command: PlannedCommand, directories: readonly string[] | undefined): CommandContext => {
    const [program, ...words] = command.argv
    return { command, name: program ? tableName(program, scope) : "", words, directories, scope, policy }
  }

  const forms = new Map(plan.commands.map((command) => [command, commandForms(command, scope)]))
  const proofs = new Map<PlannedCommand, Proof>()
  for (const [command, { genuine }] of isUnderstood(plan) ? forms : []) {
    const proof = genuine && !command.transparent ? proveReadOnly(command, true) : undefined
    const isValid = !proof?.wildcards || (await matchOnlyFiles(proof.wildcards, locate(command), scope))
    if (proof && isValid) proofs.set(command, proof)
  }
  // The proof of `find` does not apply to the commands that `find` runs. These commands follow `find` in the plan.
  for (const command of plan.commands.toReversed())
    if (command.wrapper && !proofs.has(command)) proofs.delete(command.wrapper)
  const wrappers = new Set(plan.commands.map(({ wrapper }) => wrapper))
  const onlyRead = plan.commands.every((command) => command.transparent || proofs.has(command))
  // All commands of a text run in one environment. This is the hardened environment only if every command is proved to
  // only read, whatever its wildcards match.
  const wholeProved = onlyRead && ![...proofs.values()].some(({ wildcards }) => wildcards)
  // A program such as `tar` could replace git's configuration, and a program that runs code could run git directly.
  const besideOthers = plan.commands.every(
    (command) =>
      command.transparent ||
      proofs.has(command) ||
      isPlainGit(command) ||
      isBuildTool(command.argv[0]?.text ?? ""),
  )
  const files: Check[] = []
  const commands: BashChecks["commands"] = []

  for (const [command, asRulesSeeIt] of forms) {
    const directories = locate(command)
    const context = contextOf(command, directories)
    const { words } = context
    const check = commandCheck(command, asRulesSeeIt)
    // The sandbox hides secret files, but git can still show their contents from the repository.
    const shows = basename(command.argv[0]?.text ?? "") === "git" && showsContents(words)
    const showsSecrets = shows && sandbox?.allows === true && (!directories || mayShowProtectedFile(context))
    commands.push({ command, check, showsSecrets })
    const isAllowed = judge(policy, "bash", check.forms, check.options).action === "allow"
    const add = (found: readonly Check[]) => files.push(...(isAllowed ? found.map(coverRead) : found))
    const dependsOnFiles = mayBeSplit(command) || wrappers.has(command)
    const proof = onlyRead || !dependsOnFiles ? proofs.get(command) : undefined
    // If a command is proved to only read, its lists and streams are not judged here, because the files that they come
    // from are judged.
    const isKnown = (word: Word) => !(word.fromInput || word.stream || (word.numeric && word.span === "*"))
    add(await commandFileChecks(proof ? { ...context, words: words.filter(isKnown) } : context))
    add(codeChecks(context))
    if (shows) add(trackedFileChecks("read", context))
    if (!proof) {
      add(await directoryChecks(context))
      add(await writeChecks(context))
      continue
    }
    const canRunGit = () =>
      (wholeProved || besideOthers) && isPlainRepository(directories, wholeProved ? "reading" : "plain")
    // The sandbox limits the programs that git starts, so the repository may configure some.
    const isConfined = async () =>
      wholeProved &&
      !proof.showsTracked &&
      (await sandbox?.works()) &&
      isPlainRepository(directories, "confined")
    if (proof.git && !canRunGit() && !(await isConfined())) continue
    if (proof.showsTracked && mayShowProtectedFile(context)) {
      check.reason = "it may show tracked files that cannot be read without permission"
      continue
    }
    const reading =
      proof.recursive ?? (proof.showsTracked && proof.files.length > 0 ? { hidden: true } : undefined)
    const found = reading ? await wholeReadChecks(context, proof.files, reading) : []
    if (!found) {
      add(await commandFileChecks(context))
      check.reason ??=
        "the files that it reads are unknown, because its directory is unknown, or contains too many entries or unusual file names"
      continue
    }
    add(found)
    // Listed files have plain names, so none of them is an option.
    if (proof.fromInput || command.argv.some((word) => word.stream))
      Object.assign(check, { reason: undefined, options: { ...check.options, counts: undefined } })
    check.proof = {
      permission: "bash",
      pattern: check.options.span ?? command.pattern,
      action: "allow",
      source: { file: "defaults: proved read-only" },
    }
  }
  for (const file of plan.files)
    files.push(...(await plannedFileChecks(file, locate(file), { scope, policy })))

  const checks = [
    ...wholeChecks(plan, text),
    ...commands.map((entry) => entry.check),
    ...files.map(withRemember),
  ]
  return { checks, commands }
}

function isUnderstood({ opaque, garbled }: ShellPlan): boolean {
  return opaque === undefined && !garbled
}

/** Returns true if other commands could create files whose names are split into several words or are options. */
function mayBeSplit({ argv }: PlannedCommand): boolean {
  return argv.some((word) => word.fromInput || word.unquoted || (word.glob && /^[*?[]/.test(word.text)))
}

/**
 * Returns true if each word matches at least one file in each directory, and no matching file name starts with a dash.
 */
async function matchOnlyFiles(
  words: readonly Word[],
  directories: readonly string[] = [],
  scope: CommandScope,
): Promise<boolean> {
  const found = await Promise.all(
    directories.flatMap((directory) =>
      words.map((word) => globFiles(word.text, directory, { word, listing: scope.listing })),
    ),
  )
  return found.length > 0 && found.every((names) => names && names.length > 0 && !names.some(isOption))
}

function isOption(name: string): boolean {
  return name.startsWith("-")
}

function commandCheck(command: PlannedCommand, { forms, options, genuine, reason }: CommandForms): Check {
  const check: Check = {
    permission: "bash",
    pattern: command.pattern,
    forms,
    options,
    // A file in the project may have the same name as a wrapper.
    covered: command.transparent && genuine,
    reason,
  }
  const isRisky = risksOf(basename(command.argv[0]?.text ?? ""), command.argv.slice(1)).length > 0
  const suggestion = suggestPattern(command, isRisky)
  if ("reason" in suggestion) return { ...check, onlyOnce: suggestion.reason }
  const { pattern } = suggestion
  return options.counts?.({ permission: "bash", pattern, action: "allow" }) === false
    ? { ...check, onlyOnce: "no rule can describe only this command" }
    : { ...check, remember: [pattern] }
}

/**
 * Marks a check for reading an ordinary file as covered, because a rule that allows a command also allows these
 * reads.
 */
function coverRead(check: Check): Check {
  const ordinary = check.permission === "read" && check.protection === undefined && !check.options.counts
  return ordinary ? { ...check, covered: true } : check
}

/** Adds the pattern that "always" remembers for an ordinary file that the text names. */
function withRemember(check: Check): Check {
  const { permission, pattern, options, protection } = check
  const isFile = permission === "read" || permission === "edit"
  const isKnown = options.counts === undefined && options.span === undefined && !/[*?]/.test(pattern)
  return isFile && isKnown && protection === undefined
    ? { ...check, remember: check.remember ?? [pattern] }
    : check
}

/**
 * Returns one check for the whole text if the text cannot be parsed completely, or contains no command and opens no
 * file. Otherwise, returns an empty array.
 */
function wholeChecks(plan: ShellPlan, text: string): Check[] {
  const check: Check = { permission: "bash", pattern: text, forms: [text], options: {} }
  if (isUnderstood(plan)) return plan.commands.length + plan.files.length > 0 ? [] : [check]
  check.options.counts = text.length > maxCommandLength ? () => false : coversAll
  check.options.span = "*"
  if (plan.garbled) check.options.denyForms = crudeForms(text)
  check.reason = plan.opaque ?? "its command boundaries are uncertain"
  check.onlyOnce =
    text.length > maxCommandLength
      ? "no rule can allow a command of this length"
      : "only the rule * can allow this command"
  return [check]
}

function absoluteDirectory(name: string, start: string, home: string): string {
  if (name === "~" || name.startsWith("~/")) return `${home}${name.slice(1)}`
  return isAbsolute(name) ? name : join(start, name)
}
