import { basename } from "node:path"
import { writtenWords } from "./operands.ts"
import { joinContinuations, layoutProblem, type ParseTime, parseShell, type ShellNode } from "./parse.ts"
import { findVersioned } from "./program-table.ts"
import { compose, type ShellPlan } from "./shell-plan.ts"
import { walkCommands } from "./statements.ts"

/** Maximum length of an analyzed text, in characters. */
export const maxCommandLength = 262_144

/** Maximum nesting depth of shell texts. */
const maxShellDepth = 8

/** Maximum time to parse a command text and all texts inside it, in ms. */
const maxParseMs = 2_000

const tooSlow = "it takes too long to analyze"

/**
 * Maximum number of cached plans, and maximum length of their texts in characters. The cache holds the plans of several
 * concurrent calls; up to eight are common.
 */
const maxKept = 16
const maxKeptLength = 4_096

/**
 * Plans of recent texts. One call plans its command several times: for permissions, again after a reply, for its
 * environment, and for watching files.
 */
const kept = new Map<string, Promise<Readonly<ShellPlan>>>()

/**
 * Parses a command text as a shell does and lists every command in it, including those in pipelines, lists,
 * substitutions, subshells, control flow, functions and wrappers. Does not reject for any text. Plans are shared, so do
 * not modify them.
 */
export function planCommand(text: string): Promise<Readonly<ShellPlan>> {
  if (text.length > maxKeptLength) return planAt(text, newTime())
  const known = kept.get(text)
  if (known) return known
  const plan = planAt(text, newTime())
  kept.set(text, plan)
  for (const oldest of kept.keys()) {
    if (kept.size <= maxKept) break
    kept.delete(oldest)
  }
  // A timeout or an error is not cached, because it depends on the machine's load or on loading the grammar.
  const forget = () => kept.delete(text)
  plan.then(({ opaque }) => opaque === tooSlow && forget(), forget)
  return plan
}

/** Quotes a `-` before a here-document. Otherwise, the grammar would skip the `-`. */
function quoteDashes(text: string): string {
  return text.replaceAll(
    /(?<=[^\S\n])-(?=[^\S\n]*<<-?[^\S\n]*(['"]?)[A-Za-z_]\w*\1[^\S\n]*(?:$|[\n;&|>]))/g,
    "'-'",
  )
}

function newTime(): ParseTime {
  return { left: maxParseMs }
}

async function planAt(original: string, time: ParseTime, depth = 0): Promise<ShellPlan> {
  const plan: ShellPlan = { commands: [], files: [], garbled: false }
  if (original.length > maxCommandLength) return { ...plan, opaque: "it is too long to analyze" }
  if (depth > maxShellDepth) return { ...plan, opaque: "it nests shells too deeply" }
  const text = quoteDashes(joinContinuations(original))
  const tree: ShellNode | undefined = await parseShell(text, time)
  if (!tree) return { ...plan, opaque: tooSlow, garbled: true }

  const found = walkCommands(tree, text)
  plan.commands.push(...found.commands)
  for (const { argv, inputUse, inputs = [], directories } of found.commands)
    if (inputUse === "runs" && isShell(basename(argv[0]?.text ?? "")))
      found.texts.push(...inputs.map((input) => ({ text: input, directories })))
  plan.files.push(...found.files)
  const misread = layoutProblem(tree, text)
  const problem = misread ?? found.problem
  if (problem !== undefined) plan.opaque = problem
  plan.garbled = misread !== undefined || found.garbled

  for (const inner of found.texts) {
    const nested = await planAt(inner.text, time, depth + 1)
    // The inner text starts in the directories of the outer command.
    const within = <T extends { directories?: readonly string[] }>(entry: T): T => ({
      ...entry,
      directories: compose(inner.directories, entry.directories),
    })
    for (const command of nested.commands) {
      command.fed ??= inner.fed
      command.unknownInput ??= inner.unknownInput
      command.inputs = [...(command.inputs ?? []), ...(inner.inputs ?? [])]
    }
    plan.commands.push(...nested.commands.map(within))
    plan.files.push(...nested.files.map(within))
    // This reason takes precedence over others, because it depends on the machine.
    if (nested.opaque === tooSlow) plan.opaque = tooSlow
    else if (nested.opaque !== undefined) plan.opaque ??= nested.opaque
    plan.garbled ||= nested.garbled
  }
  findCode(plan, text, found.redirectsInput)
  return plan
}

/**
 * Sets the `code` of each command whose input may be code. If a command runs its input, the input can come from any
 * part of the text, for example through a pipeline or a file. The `code` of the first such command therefore includes
 * the whole text.
 */
function findCode(plan: ShellPlan, text: string, redirectsInput?: boolean): void {
  const written = writtenFiles(plan)
  let searched = false
  for (const command of plan.commands) {
    const { argv, inputUse, inputs = [] } = command
    if (redirectsInput) command.fed = true
    if (inputUse === "runs" || (inputUse === "fed" && command.fed)) command.runsInput = true
    const runsWrittenFile = inputUse !== undefined && argv.some(({ text }) => written.has(basename(text)))
    const anywhere: boolean = !searched && (command.runsInput === true || runsWrittenFile)
    searched ||= anywhere
    const attached = inputUse === undefined || inputUse === "script" ? [] : inputs
    const code = [command.code ?? "", ...attached, anywhere ? text : ""].filter(Boolean)
    if (code.length > 0) command.code = code.join("\n")
  }
}

function isShell(name: string): boolean {
  return findVersioned(name)?.wraps === "shell"
}

/** Returns the names of the files that a command text writes, without their directories. */
function writtenFiles({ files, commands }: ShellPlan): ReadonlySet<string> {
  const redirected = files.flatMap(({ kind, target }) => (kind === "write" ? [target] : []))
  const others = commands.flatMap(({ argv: [program, ...words] }) =>
    writtenWords(basename(program?.text ?? ""), words).flatMap(({ word, uncertain }) =>
      uncertain ? [] : [word],
    ),
  )
  return new Set([...redirected, ...others].map(({ text }) => basename(text)))
}
