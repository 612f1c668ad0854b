import { existsSync } from "node:fs"
import { basename, isAbsolute, join } from "node:path"
import { fileChecks, type ResolvedScope, relativeToWorktree } from "../path-checks.ts"
import { judge, type Policy } from "../policy.ts"
import { protectionOf } from "../protected-files.ts"
import type { Check, Scope } from "../request.ts"
import { commandFileChecks, plannedFileChecks, writeChecks } from "./command-files.ts"
import {
  type CommandForms,
  type CommandPlace,
  commandForms,
  commandPlace,
  coversAll,
  expandWord,
} from "./command-forms.ts"
import { crudeForms } from "./crude-forms.ts"
import { possibleBelow, sweepChecks } from "./directory-checks.ts"
import {
  filesNeedingLeave,
  followingLinks,
  maxEntries,
  type RecursiveReading,
  unhiddenAbove,
} from "./directory-files.ts"
import { showsContents } from "./git-contents.ts"
import { trackedPaths } from "./git-index.ts"
import { type FoundRepository, findRepository, repositoryFault } from "./git-repository.ts"
import { placesOf } from "./named-paths.ts"
import { maxCommandLength, planCommand } from "./plan.ts"
import { type Proof, proveReadOnly, type WholeReading } from "./read-only.ts"
import type { PlannedCommand, ShellPlan } from "./shell-plan.ts"
import { rememberedPattern } from "./suggest.ts"
import { literalWord } from "./words.ts"

/** The checks that a command text comes to. `commands` pairs those of type `bash` with the command they are about. */
export interface BashChecks {
  checks: Check[]
  commands: { command: PlannedCommand; check: Check }[]
}

/** A shell text, and whose rules it is held against. */
export interface BashRequest {
  text: string
  /** Where the text starts. Absolute. */
  directory: string
  scope: Scope
  resolved: ResolvedScope
  policy: Policy
  /** What `~` stands for. Absolute. */
  home: string
}

/** One check for every command, and those for the files that the text names or opens. */
export async function bashChecks(request: BashRequest): Promise<BashChecks> {
  const { text, directory, scope, home, policy } = request
  const place = commandPlace(request.resolved, home, scope.searchPath)
  const plan = await planCommand(text)
  const locate = (entry: { directories?: readonly string[] }) =>
    entry.directories?.map((name) => absoluteDirectory(name, directory, home))

  const forms = new Map(plan.commands.map((command) => [command, commandForms(command, place)]))
  const proofs = new Map<PlannedCommand, Proof>()
  for (const [command, { genuine }] of plan.opaque === undefined && !plan.garbled ? forms : []) {
    const proof = genuine ? proveReadOnly(command) : undefined
    if (proof) proofs.set(command, proof)
  }
  // The environment that git needs for its proof is that of all commands: others would miss their own.
  const wholeProved = proofs.size === plan.commands.length
  const files: Check[] = []
  const commands: BashChecks["commands"] = []

  for (const [command, asRulesSeeIt] of forms) {
    const directories = locate(command)
    const check = commandCheck(command, asRulesSeeIt)
    commands.push({ command, check })
    files.push(...(await commandFileChecks(command, directories, place)))
    const proof = proofs.get(command)
    if (!proof) {
      files.push(...(await sweepChecks(command, directories, place, policy)))
      files.push(...(await writeChecks(command, directories, place, policy)))
    }
    files.push(...(await deniedInRepository(command, directories, place, policy)))
    if (!proof || (proof.git && !(wholeProved && (await isPlainRepository(directories))))) continue
    if (proof.showsTracked && (await tracksFilesNeedingLeave(directories, place, policy))) {
      check.reason = "it may show files that the repository tracks and that need leave to be read"
      continue
    }
    const whole =
      proof.recursive ?? (proof.showsTracked && proof.files.length > 0 ? { hidden: true } : undefined)
    const found = whole ? await recursiveReads({ proof, whole, directories, place, policy }) : []
    if (!found) {
      check.reason ??= `which files it reads cannot be told: where is not known, or more than ${maxEntries} lie there`
      continue
    }
    files.push(...found)
    if (proof.git) check.hardenedGit = true
    check.proof = {
      permission: "bash",
      pattern: command.pattern,
      action: "allow",
      source: { file: "defaults: proved read-only" },
    }
  }
  for (const file of plan.files) files.push(...(await plannedFileChecks(file, locate(file), place)))

  const checks = [...wholeChecks(plan, text), ...commands.map((entry) => entry.check), ...files]
  return { checks, commands }
}

function commandCheck(command: PlannedCommand, { forms, options, reason }: CommandForms): Check {
  const check: Check = { permission: "bash", pattern: command.pattern, forms, options }
  if (reason !== undefined) check.reason = reason
  const remember = reason === undefined ? rememberedPattern(command) : undefined
  if (remember !== undefined) check.remember = [remember]
  return check
}

/** A text that is not understood as a whole, or that holds no command at all, is judged as one thing. */
function wholeChecks(plan: ShellPlan, text: string): Check[] {
  const check: Check = { permission: "bash", pattern: text, forms: [text], options: {} }
  if (plan.opaque === undefined && !plan.garbled) {
    return plan.commands.length + plan.files.length > 0 ? [] : [check]
  }
  check.options.counts = text.length > maxCommandLength ? () => false : coversAll
  check.options.span = "*"
  if (plan.garbled) check.options.denyForms = crudeForms(text)
  check.reason = plan.opaque ?? "where its commands begin and end is not certain"
  return [check]
}

function absoluteDirectory(name: string, start: string, home: string): string {
  if (name === "~" || name.startsWith("~/")) return `${home}${name.slice(1)}`
  return isAbsolute(name) ? name : join(start, name)
}

async function isPlainRepository(directories: readonly string[] | undefined): Promise<boolean> {
  for (const directory of directories ?? [])
    if ((await repositoryFault(directory)) !== undefined) return false
  return directories !== undefined
}

/**
 * A deny of reading holds also where git may show the file, whatever a rule says of the command: such a command asks,
 * since which files it shows cannot be told.
 */
async function deniedInRepository(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  place: CommandPlace,
  policy: Policy,
): Promise<Check[]> {
  const [program, ...words] = command.argv
  if (basename(program?.text ?? "") !== "git" || !showsContents(words)) return []
  const checks: Check[] = []
  for (const directory of directories ?? []) {
    const repository = await findRepository(directory)
    const paths = repository ? await trackedIn(repository) : []
    if (repository && !paths) checks.push(...possibleBelow(repository.root, place, policy))
    const denied = (paths ?? [])
      .map((path) => join(repository?.root ?? "", path))
      .find((path) => judge(policy, "read", [relativeToWorktree(path, place), path]).action === "deny")
    if (denied === undefined) continue
    const span = relativeToWorktree(denied, place)
    checks.push({
      permission: "read",
      pattern: span,
      forms: [],
      options: { span, spanRefusals: ["deny"] },
      reason: "git may show it",
    })
  }
  return checks
}

async function trackedIn({ gitDirectory }: FoundRepository): Promise<string[] | undefined> {
  return gitDirectory === undefined ? undefined : trackedPaths(gitDirectory)
}

/** True where git may show such a file, or where what it tracks cannot be told. Of the past it shows any it ever tracked. */
async function tracksFilesNeedingLeave(
  directories: readonly string[] | undefined,
  place: CommandPlace,
  policy: Policy,
): Promise<boolean> {
  const needsLeave = leaveTest(place, policy)
  for (const directory of directories ?? []) {
    const repository = await findRepository(directory)
    if (!repository) continue
    const paths = await trackedIn(repository)
    if (!paths || paths.some((path) => needsLeave(join(repository.root, path)))) return true
  }
  return false
}

/** Tells the files that are not free to be read. */
function leaveTest(place: CommandPlace, policy: Policy): (path: string) => boolean {
  return (path) => {
    const relative = relativeToWorktree(path, place)
    return (
      protectionOf(relative, "read") !== undefined ||
      judge(policy, "read", [relative, path]).action !== "allow"
    )
  }
}

/** The checks for files below the directories that a command reads whole; undefined where they cannot be known. */
async function recursiveReads(search: {
  proof: Proof
  whole: WholeReading
  directories: readonly string[] | undefined
  place: CommandPlace
  policy: Policy
}): Promise<Check[] | undefined> {
  const { proof, whole, directories, place, policy } = search
  if (!directories) return undefined
  const { hidden, unhidden, followsLinks } = whole
  const needsLeave = leaveTest(place, policy)
  const reading: RecursiveReading = { hidden, needsLeave }
  if (followsLinks) Object.assign(reading, followingLinks(needsLeave, place))
  const words = proof.files.length > 0 ? proof.files : [literalWord(".")]
  const roots = words.flatMap((word) => placesOf(expandWord(word, place.home), word, directories) ?? [])
  const checks: Check[] = []
  for (const root of roots) {
    if (!existsSync(root)) checks.push(...possibleBelow(root, place, policy))
    if (unhidden) reading.unhidden = [...unhidden, ...(await unhiddenAbove(root, place.realWorktree))]
    const found = await filesNeedingLeave(root, reading)
    if (!found) return undefined
    checks.push(...found.flatMap((path) => fileChecks("read", path, place)))
  }
  return checks
}
