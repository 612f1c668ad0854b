/** Programs by name. Names that share an entry are separated by blanks. */
export type ProgramTable = readonly (readonly [names: string, program: Program])[]

/**
 * How a program uses its arguments. Every question about a program is answered from its entry: whether a command
 * only reads, which files it reads and writes, which options a rule must name, which command it runs, and the
 * pattern that "always" remembers. Options are listed in one line, separated by blanks. `|` joins the names of one
 * option. In `readOnly`, `-n:` and `--lines=` take a value, `-i?` and `--color?` may have one attached, and others
 * take none. In the other lists, a `*` at the end means that the value is attached.
 */
export interface Program extends WordStyle {
  /** Options with which the program only reads. Without this list no command of the program is proved to only read. */
  readOnly?: string | ReadOnly
  /** Options whose value is a file or directory that the program writes. A rule has to name them. */
  writes?: string
  /** The same where a rule for the program covers it, because it is what the program is used for. */
  targets?: string
  /** Options with which the program writes its operands. A rule has to name them. */
  inPlace?: string
  /** Options that run a program or code, read settings that can, or write a file of another name. A rule has to name them. */
  risks?: string
  /** Options whose value is a text for people and never a path. */
  texts?: string
  /** Further options that take a value. */
  valued?: string
  /** Options that look like the abbreviation of a risky one and are not. */
  harmless?: string

  operands?: OperandRole
  /** An operand that starts like this names a file that the program writes, as in `dd of=file`. */
  operandPrefix?: string
  /** An operand that does not match is a risk. */
  operand?: RegExp
  /** A further operand is a file that the program writes. */
  maxOperands?: number
  /** The first operand, or the value of these options, is a script. One that does not match is a risk. */
  script?: { plain: RegExp; options: string }
  /**
   * Without an operand, or with `-`, the program runs what it reads from its input. A rule allows that by naming `-`.
   * With these options it does something else.
   */
  fromInput?: string

  /** Subcommands, by one word or two. */
  subcommands?: Readonly<Record<string, Program>>
  /** Subcommands that a rule has to name. */
  riskySubcommands?: string
  /** Of git: the subcommand changes nothing but the worktree and the repository, and runs no program of its own. */
  repository?: boolean
  /** Of git: when the subcommand prints the contents of tracked files. */
  shows?: "always" | "unless summed up" | "with a patch option" | "when interactive" | "when verbose"

  /** How the program reads directories, where it reads what is in them. */
  directories?: DirectoryReading
  /** How the program runs another command. `unknown`: its words do not say which. */
  wraps?: Wrapping | "shell" | "find" | "fd" | "unknown"
  /**
   * The command that the program runs begins somewhere after these words, separated by `|`, or anywhere where the text is
   * empty. A rule for the program covers it. A deny of the command still holds.
   */
  runsAfter?: string
  /**
   * Of a shell builtin: it evaluates its arguments as code, it changes what later commands mean, or it is harmless only
   * where every word passes.
   */
  builtin?: "evaluates" | "changes" | ((word: string) => boolean)

  /** The words that "always" remembers: how many, or the command as it is. Default: 1. */
  remember?: number | "exact"
  /** Subcommands with which one more word is remembered. */
  longer?: string
}

/**
 * The role of the operands. `reads`: files that are read. `text`: not files. `pattern`: a pattern, then files that
 * are read. `edits`: files whose contents are replaced, which asks like an edit. `changes`: files that are changed
 * in another way. `copies`: sources that are read, then a destination that is written. `moves`: sources that are
 * moved to a destination.
 */
export type OperandRole = "reads" | "text" | "pattern" | "edits" | "changes" | "copies" | "moves"

/** How arguments are split into options and operands. */
export interface WordStyle {
  /** Options with one dash are whole words, as with `find`. Two dashes mean the same. */
  singleDash?: boolean
  /** Options are never abbreviated. */
  whole?: boolean
  /** `-20` is an option. */
  numbers?: boolean
  /** The first word is a bundle of short options even without a dash, as with `tar`. */
  leadingBundle?: boolean
  /** The arguments after the first operand belong to the script or command that it names. */
  stopsAtOperand?: boolean
  /** The arguments after a word with this prefix belong to another program. */
  stopsAfter?: string
}

/** The commands of a program that only read. */
export interface ReadOnly {
  options: string
  /** The role of the operands in such a command, where other commands of the program use them differently. */
  operands?: "reads" | "text" | "pattern"
  maxOperands?: number
  /** Every operand has to match. */
  operand?: RegExp
  /** The first operand has to exist and to match. */
  first?: RegExp
  /** One of these options has to be there. */
  requires?: readonly string[]
  /** Operands that are not files, such as the brackets of `find`. */
  neutral?: readonly string[]
}

/** How a program reads what is in the directories among its operands. Patterns are tested on each word. */
export interface DirectoryReading {
  /** A word with which it does. Default: it always does. */
  when?: RegExp
  /** It reads its working directory where no operand is a directory. */
  own?: boolean
  /** A word with which it follows the links in a directory. Default: the usual options for that. */
  follows?: RegExp
  /** It follows links unless a word matches. */
  followsUnless?: RegExp
  /** Options with which it also reads files whose names start with a dot. Default: it always does. */
  hidden?: readonly string[]
  /** Of the hidden files it reads those that its options name, and those that ignore files take in again. */
  unhides?: boolean
}

/** A program whose words are options of its own and then another command. */
export interface Wrapping {
  options: string
  numbers?: boolean
  /** Operands before the inner command, such as the duration of `timeout`. */
  operands?: number
  /** `NAME=value` words may precede the inner command. */
  assigns?: boolean
  /** `-S` takes the words of the inner command from a text. */
  splits?: boolean
  /** The inner command gets further words that are not known. */
  appends?: boolean
  /** Options whose value stands for unknown text wherever it occurs in the inner command. */
  replaces?: readonly string[]
  /** With one of these options the program only looks something up. */
  looksUp?: readonly string[]
  /** With one of these options the inner command starts in another directory. */
  moves?: readonly string[]
}
