/** Programs by name. Blanks separate names that share an entry. */
export type ProgramTable = readonly (readonly [names: string, program: Program])[]

/**
 * How a program uses its arguments. An entry determines whether a command only reads, which files it reads and
 * writes, which options a rule must name, which command it runs, and which pattern "always" remembers. Options are
 * listed in one line, separated by blanks. `|` joins the names of one option. In `readOnly`, `-n:` and `--lines=`
 * take a value, `-i?` and `--color?` may have one attached, and others take none. In the other lists, a `*` at the
 * end means that the value is attached.
 */
export interface Program extends WordStyle {
  /** Options with which the program only reads. Without this list, no command of the program is proved read-only. */
  readOnly?: string | ReadOnly
  /** Options whose value is a file or directory that the program writes. A rule must name them. */
  writes?: string
  /** The same for options that a rule for the program covers, because writing is its purpose. */
  targets?: string
  /** Options with which the program writes its operands. A rule must name them. */
  inPlace?: string
  /**
   * Options that run a program or code, read settings that can, or write a file with another name. A rule must name
   * them.
   */
  risks?: string
  /** Options whose value is prose, never a path. */
  texts?: string
  /** Further options that take a value. */
  valued?: string
  /** Options that look like abbreviations of a risky option but are not. */
  harmless?: string

  operands?: OperandRole
  /** An operand with this prefix names a file that the program writes, as in `dd of=file`. */
  operandPrefix?: string
  /** An operand that does not match is a risk. */
  operand?: RegExp
  /** Operands after the first are files that the program writes. */
  maxOperands?: number
  /** The first operand, or the value of these options, is a script. A script that does not match is a risk. */
  script?: { plain: RegExp; options: string }
  /**
   * Without an operand, or with `-`, the program runs its standard input. A rule allows that by naming `-`. Does not
   * apply with these options.
   */
  fromInput?: string

  /** Subcommands, by one word or two. */
  subcommands?: Readonly<Record<string, Program>>
  /** Subcommands that a rule must name. */
  riskySubcommands?: string
  /** For git: the subcommand changes only the worktree and the repository, and runs no other program. */
  repository?: boolean
  /** For git: when the subcommand prints the contents of tracked files. */
  shows?: "always" | "unless summed up" | "with a patch option" | "when interactive" | "when verbose"

  /** How the program reads the contents of directories, if it does. */
  directories?: DirectoryReading
  /** How the program runs another command. `unknown`: its arguments do not name the command. */
  wraps?: Wrapping | "shell" | "find" | "fd" | "unknown"
  /**
   * The command that the program runs begins somewhere after these words, separated by `|`, or anywhere if the text
   * is empty. A rule for the program covers it. A deny of the command still applies.
   */
  runsAfter?: string
  /**
   * For a shell builtin: it evaluates its arguments as code, changes the meaning of later commands, or is harmless
   * only if every word passes.
   */
  builtin?: "evaluates" | "changes" | ((word: string) => boolean)

  /** The number of words that "always" remembers, or the whole command. Default: 1. */
  remember?: number | "exact"
  /** Subcommands for which "always" remembers one more word. */
  longer?: string
}

/**
 * The role of the operands. `reads`: files that are read. `text`: not files. `pattern`: a pattern, then files that
 * are read. `edits`: files whose contents are replaced, which requires the `edit` permission. `changes`: files that
 * are changed in another way. `copies`: sources that are read, then a destination that is written. `moves`: sources
 * that are moved to a destination.
 */
export type OperandRole = "reads" | "text" | "pattern" | "edits" | "changes" | "copies" | "moves"

/** How arguments are split into options and operands. */
export interface WordStyle {
  /** Options with one dash are whole words, as with `find`. Two dashes are equivalent. */
  singleDash?: boolean
  /** Options are never abbreviated. */
  whole?: boolean
  /** `-20` is an option. */
  numbers?: boolean
  /** The first word is a bundle of short options, even without a dash, as with `tar`. */
  leadingBundle?: boolean
  /** The arguments after the first operand belong to the script or command that it names. */
  stopsAtOperand?: boolean
  /** The arguments after a word with this prefix belong to another program. */
  stopsAfter?: string
}

/** The read-only commands of a program. */
export interface ReadOnly {
  options: string
  /** The role of the operands in read-only commands, if it differs from other commands of the program. */
  operands?: "reads" | "text" | "pattern"
  maxOperands?: number
  /** Every operand must match. */
  operand?: RegExp
  /** The first operand must exist and match. */
  first?: RegExp
  /** At least one of these options is required. */
  requires?: readonly string[]
  /** Operands that are not files, such as the brackets of `find`. */
  neutral?: readonly string[]
}

/** How a program reads the contents of directories among its operands. Patterns are tested on each word. */
export interface DirectoryReading {
  /** A word that makes it read them. Default: it always does. */
  when?: RegExp
  /** It reads its working directory if no operand is a directory. */
  own?: boolean
  /** A word that makes it follow links in a directory. Default: the usual options. */
  follows?: RegExp
  /** It follows links unless a word matches. */
  followsUnless?: RegExp
  /** Options that include hidden files. Default: always included. */
  hidden?: readonly string[]
  /** It reads only the hidden files that its options name or ignore files re-include. */
  unhides?: boolean
}

/** A program whose words are its own options, followed by another command. */
export interface Wrapping {
  options: string
  numbers?: boolean
  /** Operands before the inner command, such as the duration of `timeout`. */
  operands?: number
  /** `NAME=value` words may precede the inner command. */
  assigns?: boolean
  /** The value of `-S` contains the words of the inner command. */
  splits?: boolean
  /** The inner command receives additional, unknown words. */
  appends?: boolean
  /** Options whose value stands for unknown text wherever it occurs in the inner command. */
  replaces?: readonly string[]
  /** With one of these options the program runs nothing. */
  looksUp?: readonly string[]
  /** With one of these options the inner command starts in another directory. */
  moves?: readonly string[]
}
