import { type PlannedCommand, planCommand } from "./plan.ts"
import { findProgram } from "./program-table.ts"
import { proveReadOnly } from "./read-only.ts"

/** What is known of all programs of a text. */
export interface KnownPrograms {
  /** They only read, or are git: what they read was judged before they run. */
  known: boolean
  /** Git may change the repository, and nothing else of the text changes anything. */
  git: boolean
}

/**
 * Looks whether a text is made of git and of commands that are proved to only read: `git add -A && git commit -m …`.
 * Subcommands of git that run programs by their arguments do not count, nor does anything that sets options or variables
 * for it.
 */
export async function knownPrograms(text: string): Promise<KnownPrograms> {
  const plan = await planCommand(text)
  const clear = plan.opaque === undefined && !plan.garbled && plan.commands.length > 0
  const known =
    clear &&
    plan.files.every(({ kind }) => kind !== "write") &&
    plan.commands.every((each) => isPlainGit(each) || proveReadOnly(each) !== undefined)
  return { known, git: known && plan.commands.some(isPlainGit) }
}

const git = findProgram("git")

function isPlainGit({ argv, opaque, assigns, wrapped }: PlannedCommand): boolean {
  const [program, subcommand, ...words] = argv
  if (program?.text !== "git" || !subcommand || subcommand.dynamic) return false
  if (opaque !== undefined || assigns || wrapped || !git?.subcommands?.[subcommand.text]?.repository)
    return false
  return !words.some(({ text }) => runsProgram.test(text))
}

/** Options that name a program, abbreviated or not. */
const runsProgram = /^(?:-x|--e(?:x|xe|xec)?(?:=|$)|--upl|--rec|--ext)/
