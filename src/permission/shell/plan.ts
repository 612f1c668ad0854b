import { crudeForms } from "./crude-forms.ts"
import { compose } from "./directories.ts"
import { joinContinuations, layoutProblem, type ParseTime, parseShell, type ShellNode } from "./parse.ts"
import type { ShellPlan } from "./shell-plan.ts"
import { walkCommands } from "./walk.ts"

/** Maximum length of an analyzed text, in characters. */
export const maxCommandLength = 262_144

/** Maximum nesting depth of shell texts. */
const maxShellDepth = 8

/** Maximum time to parse a text and all texts inside it, in ms. */
const maxParseMs = 2_000

const tooSlow = "it takes too long to analyze"

/**
 * Maximum number of cached plans, and maximum length of their texts in characters. Up to eight concurrent calls are
 * common.
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
 * substitutions, subshells, control flow, functions and wrappers. Does not throw for any text. Plans are shared, so do
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
  // These results are not cached, because they also depend on machine load and on loading the grammar.
  const forget = () => kept.delete(text)
  plan.then(({ opaque }) => opaque === tooSlow && forget(), forget)
  return plan
}

/** Quotes a `-` before a here-document. The grammar would skip it. */
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
  if (!tree) return { ...plan, opaque: tooSlow }

  const found = walkCommands(tree, text)
  for (const command of found.commands) if (command.runsInput) command.denyForms.push(...crudeForms(text))
  plan.commands.push(...found.commands)
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
    plan.commands.push(...nested.commands.map(within))
    plan.files.push(...nested.files.map(within))
    // This reason has priority over others, because it depends on the machine.
    if (nested.opaque === tooSlow) plan.opaque = tooSlow
    else if (nested.opaque !== undefined) plan.opaque ??= nested.opaque
    plan.garbled ||= nested.garbled
  }
  return plan
}
