import { showsContents } from "./git-contents.ts"
import { type ScannedArguments, scanArguments } from "./options.ts"
import type { PlannedCommand, ShellPlan } from "./plan.ts"
import { readOnlyBasics } from "./read-only-basics.ts"
import { readOnlyGit } from "./read-only-git.ts"
import type { ReadOnlyProgram } from "./read-only-program.ts"
import { readOnlyTools } from "./read-only-tools.ts"
import { unhiddenByOptions } from "./unhidden.ts"
import type { Word } from "./words.ts"

/** How a command reads directories: as in {@link RecursiveReading}. */
export interface WholeReading {
  hidden: boolean
  unhidden?: readonly string[]
  followsLinks?: boolean
}

/** What a command that is proved to only read gives to read. */
export interface Proof {
  /** Operands that may name files. */
  files: Word[]
  /** It reads what lies in the directories among them, or in its own where none is named. */
  recursive?: WholeReading
  /** It is git: it has to run with the hardened environment. */
  git: boolean
  /** It is git and shows what stands in files, any that it tracks. */
  showsTracked?: boolean
}

/**
 * The proof that a command writes nothing, starts nothing and asks no network, or nothing where the table cannot give
 * one: every option has to be known, every word but `$HOME` and `$PWD` at a word's start literal, and the program named
 * by a plain name. What it reads is judged as `read`.
 */
export function proveReadOnly(command: PlannedCommand): Proof | undefined {
  const [program, ...words] = command.argv
  if (!program || command.opaque !== undefined || command.assigns || command.wrapped) return undefined
  if (command.argv.some((word) => word.dynamic || word.glob)) return undefined
  if (program.text === "git") return proveGit(words)
  return prove(programs.get(program.text), words)
}

/** True for a text of nothing but proved commands, with git among them: only such a text has git allowed by proof. */
export function needsHardenedGit(plan: ShellPlan): boolean {
  const proofs = plan.commands.map(proveReadOnly)
  return (
    plan.opaque === undefined && !plan.garbled && proofs.every(Boolean) && proofs.some((proof) => proof?.git)
  )
}

/** True for programs whose file operands are only ever read, whatever their options: {@link risksOf} knows those that write. */
export function isReader(name: string): boolean {
  const program = programs.get(name)
  return program !== undefined && !program.mayWrite
}

/** True for programs whose operands are no files. */
export function takesText(name: string): boolean {
  return isReader(name) && programs.get(name)?.operands === "text"
}

/**
 * The words that may name files: the operands where all options of the program are known, without the pattern of
 * `grep`; else every word.
 */
export function fileOperands(name: string, words: readonly Word[]): readonly Word[] {
  const program = programs.get(name)
  const scan = program && scanArguments(words, program)
  if (!scan || scan.unknown || program.mayWrite) return words
  return program.operands === "pattern, then files" && !givesPattern(scan)
    ? scan.operands.slice(1)
    : scan.operands
}

const programs: ReadonlyMap<string, ReadOnlyProgram> = new Map([...readOnlyTools, ...readOnlyBasics])

const gitSubcommands: ReadonlyMap<string, ReadOnlyProgram> = new Map(readOnlyGit)

function prove(program: ReadOnlyProgram | undefined, words: readonly Word[]): Proof | undefined {
  if (!program) return undefined
  const scan = scanArguments(words, program)
  // `echo` prints what it does not know as an option.
  if (scan.unknown)
    return program.operands === "text" && program === programs.get("echo")
      ? { files: [], git: false }
      : undefined
  const { maxOperands = Number.POSITIVE_INFINITY, operand, first, requires, neutral = [] } = program
  if (scan.operands.length > maxOperands) return undefined
  if (first && !(scan.operands[0] && first.test(scan.operands[0].text))) return undefined
  if (requires && !scan.options.some(({ name }) => requires.includes(name))) return undefined
  if (operand && !scan.operands.every((word) => operand.test(word.text))) return undefined
  if (program.operands === "text") return { files: [], git: false }

  const skipped = program.operands === "pattern, then files" && !givesPattern(scan) ? 1 : 0
  const files = scan.operands.slice(skipped).filter((word) => !neutral.includes(word.text))
  const uses = (names: readonly string[]) => scan.options.some((option) => names.includes(option.name))
  const { recursive, hidden, unhides, followsLinks } = program
  if (recursive === undefined || (recursive !== "always" && !uses(recursive))) return { files, git: false }
  const whole: WholeReading = { hidden: hidden === undefined || uses(hidden) }
  if (unhides) whole.unhidden = unhiddenByOptions(scan.options)
  if (followsLinks) whole.followsLinks = true
  return { files, recursive: whole, git: false }
}

function givesPattern(scan: ScannedArguments): boolean {
  return scan.options.some(({ name }) => ["-e", "--regexp", "--files", "--type-list"].includes(name))
}

function proveGit(words: readonly Word[]): Proof | undefined {
  const global = scanArguments(words, {
    options: "-P --no-pager --no-optional-locks",
    stopsAtOperand: true,
  })
  const [subcommand, ...rest] = global.operands
  if (global.unknown || !subcommand) return undefined
  // Some have subcommands of their own, which are words and nothing behind a `--`.
  const inner = gitSubcommands.get(`${subcommand.text} ${rest[0]?.text}`)
  const proof = prove(inner ?? gitSubcommands.get(subcommand.text), inner ? rest.slice(1) : rest)
  if (!proof) return undefined
  // `HEAD:name` and `:name` are files of a commit or the index.
  const named = proof.files.filter((word) => word.text.includes(":"))
  const inside = named.map((word) => ({ ...word, text: word.text.slice(word.text.indexOf(":") + 1) }))
  return { ...proof, files: [...proof.files, ...inside], git: true, showsTracked: showsContents(words) }
}
