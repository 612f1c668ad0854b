import { crudeForms } from "./crude-forms.ts"
import { compose } from "./directories.ts"
import { joinContinuations, layoutProblem, parseShell, type ShellNode } from "./parse.ts"
import type { ShellPlan } from "./shell-plan.ts"
import { walkCommands } from "./walk.ts"

/** The length of a text that is still analysed, in characters. */
export const maxCommandLength = 262_144

/** The nesting of texts for further shells that is followed. */
const maxShellDepth = 8

const tooSlow = "it takes too long to analyse"

/**
 * The number of plans in the cache, and the length of their texts in characters. Eight calls at the same time are
 * usual.
 */
const maxKept = 16
const maxKeptLength = 4_096

/**
 * The plans of the last texts. One call plans its command several times: for permission, again after a reply, for
 * its environment and for the files to watch.
 */
const kept = new Map<string, Promise<Readonly<ShellPlan>>>()

/**
 * Reads a command text as a shell would, and lists every command in it: in pipelines, lists, substitutions,
 * subshells, control flow and functions, and those that wrappers run. Never throws because of the text. Plans are
 * shared and must not be changed.
 */
export function planCommand(text: string): Promise<Readonly<ShellPlan>> {
  if (text.length > maxKeptLength) return planAt(text, 0)
  const known = kept.get(text)
  if (known) return known
  const plan = planAt(text, 0)
  kept.set(text, plan)
  for (const oldest of kept.keys()) {
    if (kept.size <= maxKept) break
    kept.delete(oldest)
  }
  // These results depend on more than the text: on the load of the machine, and on loading the grammar.
  const forget = () => kept.delete(text)
  plan.then(({ opaque }) => opaque === tooSlow && forget(), forget)
  return plan
}

async function planAt(original: string, depth: number): Promise<ShellPlan> {
  const plan: ShellPlan = { commands: [], files: [], garbled: false }
  if (original.length > maxCommandLength) return { ...plan, opaque: "it is too long to analyse" }
  if (depth > maxShellDepth) return { ...plan, opaque: "it starts shells within shells too deeply" }
  const text = joinContinuations(original)
  const tree: ShellNode | undefined = await parseShell(text)
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
    const nested = await planAt(inner.text, depth + 1)
    // The directories of the inner text start in that of the outer command.
    const within = <T extends { directories?: readonly string[] }>(entry: T): T => ({
      ...entry,
      directories: compose(inner.directories, entry.directories),
    })
    plan.commands.push(...nested.commands.map(within))
    plan.files.push(...nested.files.map(within))
    // This reason wins, because it depends on the machine.
    if (nested.opaque === tooSlow) plan.opaque = tooSlow
    else if (nested.opaque !== undefined) plan.opaque ??= nested.opaque
    plan.garbled ||= nested.garbled
  }
  return plan
}
