/** Programs by name. Blanks separate the names of programs that share an entry. */
export type ProgramTable = readonly (readonly [names: string, program: Program])[]

/**
 * How a program uses its arguments. The entry determines whether a command only reads, which files it uses, which
 * options a rule must name, which command it runs, and which pattern "always" remembers. Blanks separate options, and
 * `|` joins the names of one option. In `readOnly`, `-n:` and `--lines=` require a value, `-i?` and `--color?` may have
 * an attached value, and other options take none. In other lists, a final `*` means that the value is attached.
 */
export interface Program extends WordStyle {
  /**
   * Options with which the program only reads. Without this field, a command that runs the program is proved read-only
   * only by `version` or `prints`.
   */
  readOnly?: string | ReadOnly
  /** Options with which the program, without any other argument, only prints information about itself. */
  version?: string
  /** Options whose value is a file or directory that the program writes. A rule must name these options. */
  writes?: string
  /**
   * Like `writes`, but a rule does not need to name these options, because writing is the purpose of the program. If
   * the program writes files that its arguments do not name, the values name a source instead, as with `-f` in `tar
   * -x`.
   */
  targets?: string
  /**
   * Options with which the program writes its operands, or files in its working directory if it has no operands. A rule
   * must name these options.
   */
  inPlace?: string
  /**
   * Like `inPlace`, but a rule does not need to name these options, because writing is the purpose of the program.
   */
  rewrites?: string
  /**
   * Options with which the program writes no files except the files named by options in `writes`. An option in
   * `rewrites` overrules these options.
   */
  dryRun?: string
  /** The conditions under which the program writes files that its arguments do not name. */
  spreads?: Spreading
  /** The conditions under which the program writes a file that is named after a URL operand. */
  downloads?: Downloading
  /** Options that name the directory for `spreads` and `downloads`. Default: the working directory. */
  into?: string
  /**
   * Options that run a program or code, read settings that can do so, or write a file with another name. A rule must
   * name these options.
   */
  risks?: string
  /** Options whose values must be examined. */
  values?: readonly OptionValue[]
  /** Options whose value is prose, never a path. */
  texts?: string
  /** Options that take a value and are in no other list. */
  valued?: string
  /** Options that look like abbreviations of a risky option but are harmless. */
  harmless?: string

  operands?: OperandRole
  /** Whether the program only prints its words: every option and every name that a glob matches is harmless. */
  prints?: true
  /** Option before the operands that names the directory in which the program starts. */
  startsIn?: "-C"
  /** Prefix of an operand that names a written file, such as `of=` in `dd of=file`. */
  operandPrefix?: string
  /** Pattern for harmless operands. An operand that does not match is a risk. */
  operand?: RegExp
  /** Maximum number of harmless operands. Each operand after these is a file that the program writes. */
  maxOperands?: number
  /**
   * The script of the program: the first operand, or the value of one of `options`. A script that does not match
   * `plain` is a risk.
   */
  script?: { plain: ScriptTest; options: string }
  /**
   * The conditions under which the program runs its standard input as code. A rule must contain `-` to allow this
   * command.
   */
  input?: CodeInput
  /** Modules after `stopsAt` that run code from their arguments or from standard input. A rule must name them. */
  modules?: string

  /** Subcommands, keyed by name. A name consists of one or two words. */
  subcommands?: Readonly<Record<string, Program>>
  /**
   * Subcommands, keyed by name, that accept the program's options and differ only in the files that they read and
   * write. A rule does not need to name them.
   */
  actions?: Readonly<Record<string, Action>>
  /** Subcommands that a rule must name. */
  riskySubcommands?: string
  /** Whether the git subcommand changes only the worktree and the repository, and runs no other program. */
  repository?: boolean
  /** The conditions under which the git subcommand prints the contents of tracked files. */
  shows?: "always" | "unless summed up" | "with a patch option" | "when interactive" | "when verbose"

  /** How the program reads the contents of directories. Undefined if it does not read them. */
  directories?: DirectoryReading
  /**
   * Options with which the program prints only the names of files that it reads: any of `options`, and at least one of
   * `requires`.
   */
  lists?: { options: string; requires: readonly string[] }
  /** Options with which the program only selects or sorts the lines of its input. */
  selectsLines?: string
  /** How the program runs another command. `unknown` means that its arguments do not name the command. */
  wraps?: Wrapping | "shell" | "find" | "fd" | "unknown"
  /**
   * The conditions under which a rule for the inner command is enough to allow the whole command. A rule that denies
   * the program still applies. For `env`, the value is `without options`, because `env` options can remove the
   * variables that make git safe.
   */
  transparent?: "always" | "without options"
  /**
   * Words, separated by `|`, after which the inner command starts. If the list is empty, the inner command may start at
   * any word. A rule that allows the program also allows the inner command, but a deny rule for the inner command still
   * applies.
   */
  runsAfter?: string
  /**
   * The effect of a shell builtin: it evaluates its arguments as code, or changes the meaning of later commands.
   * `named` means that a rule can allow the change by naming each operand. If the value is a function, the builtin is
   * harmless if the function returns true for its words.
   */
  builtin?: "evaluates" | "changes" | "named" | ((words: readonly string[]) => boolean)

  /**
   * The number of words that "always" remembers, or `exact` for the whole command. Default: `exact` if `input` is set,
   * otherwise 1.
   */
  remember?: number | "exact"
  /** Subcommands for which "always" remembers the whole command, because they write settings or run a command. */
  exact?: string
  /** Subcommands for which "always" remembers one word more than usual, such as the name of a script. */
  longer?: string
}

/** Possible contents of an option's value. */
export interface OptionValue {
  options: string
  /** A value that does not match is a risk. Default: every value is harmless. */
  harmless?: ScriptTest
  /** Matches each file that a value names. The first group is the file name. Requires the flag `g`. */
  reads?: RegExp
  /** Like `reads`, but for files that the program writes. */
  writes?: RegExp
}

/** The fields of a program that determine which files it reads and writes. */
export type Action = Pick<
  Program,
  "operands" | "readOnly" | "targets" | "rewrites" | "dryRun" | "spreads" | "into"
>

/**
 * The conditions under which a program writes files that its arguments do not name, such as the contents of an archive.
 */
export interface Spreading {
  /** Options with which the program writes these files. Default: the program always writes them. */
  with?: string
  /**
   * Options with which the program does not write these files if it has no operands, such as `-b` in `git checkout`.
   */
  unless?: string
  /** Whether the program writes these files only if it has no operands, or has an option in `into`. */
  unlessOperands?: true
  /** Whether the program writes only its operands if an operand exists as a file or follows `--`. */
  unlessPaths?: true
  /** Whether the program writes only files that git tracks. */
  tracked?: true
  /** Options with which the program may write files at any absolute path. */
  anywhere?: string
}

/** The conditions under which a program writes a file that is named after a URL operand. */
export interface Downloading {
  /** Options with which the program writes this file. Default: the program always writes it. */
  with?: string
  /** Options with which the program does not write this file. */
  unless?: string
}

/**
 * The role of the operands.
 *
 * - `reads`: files that are read.
 * - `names`: files whose names or attributes are read, but not their contents.
 * - `text`: text, not files.
 * - `pattern`: a pattern, then files that are read.
 * - `edits`: files whose contents are replaced, which requires the `edit` permission.
 * - `changes`: files that are changed in another way.
 * - `copies`: sources that are read, then a destination that is written.
 * - `moves`: sources that are moved, then their destination.
 * - `links`: sources that get another name, then the name.
 * - `first`: a file that is written, then files that are read.
 * - `clones`: a URL, then a directory that is created. Default: the name in the URL.
 */
export type OperandRole =
  | "reads"
  | "names"
  | "text"
  | "pattern"
  | "edits"
  | "changes"
  | "copies"
  | "moves"
  | "links"
  | "first"
  | "clones"

/** How arguments are split into options and operands. */
export interface WordStyle {
  /** Whether options with one dash are whole words, as with `find`. Two dashes are then equivalent to one dash. */
  singleDash?: boolean
  /** Whether options cannot be abbreviated. */
  whole?: boolean
  /** Whether a number such as `-20` is an option. */
  numbers?: boolean
  /** Whether the first word is a bundle of short options even without a dash, as with `tar`. */
  leadingBundle?: boolean
  /** Whether the arguments after the first operand belong to the script or command that the operand names. */
  stopsAtOperand?: boolean
  /** Matches an option after which the arguments belong to a module. The option or the next word names the module. */
  stopsAt?: RegExp
}

/**
 * The conditions under which a program runs its standard input as code: it has no operand, the operand `-`, or an
 * operand that names the input, such as `/dev/stdin`.
 */
export interface CodeInput {
  /** Options with which the program does not run its input. */
  unless?: string
  /** Options and first operands with which the program runs its input even if another operand names a script. */
  with?: string
  /**
   * Whether operands name data, such as a database, and not a script. The program then runs any input that it receives.
   */
  always?: boolean
  /** Subcommands, separated by blanks, whose next operand names the script. */
  after?: string
}

/** The conditions under which a command of a program is read-only. */
export interface ReadOnly {
  options: string
  /** The role of the operands in read-only commands, if it differs from their role in other commands of the program. */
  operands?: "reads" | "names" | "text" | "pattern"
  maxOperands?: number
  /** Pattern that every operand must match. */
  operand?: RegExp
  /** Pattern that the first operand must match. The operand is required. */
  first?: ScriptTest
  /** Options of which at least one is required. */
  requires?: readonly string[]
  /** Operands that are not files, such as the brackets of `find`. */
  neutral?: readonly string[]
}

/** How a program reads the contents of its directory operands. Each pattern is tested on every word. */
export interface DirectoryReading {
  /** Matches a word that makes the program read directories. Default: the program always reads directories. */
  when?: RegExp
  /** Whether the program reads its working directory if no operand is a directory. */
  own?: boolean
  /**
   * Matches a word that makes the program follow links in a directory. Default: `-L`, and options that start with
   * `--copy-links`, `--deref` or `--follow`.
   */
  follows?: RegExp
  /** Matches a word that stops the program from following links. Without this word, the program follows links. */
  followsUnless?: RegExp
  /** Whether the options `--include` and `--exclude` select files by name, as with `grep`. */
  filters?: true
  /** Options that include hidden files. Default: hidden files are always included. */
  hidden?: readonly string[]
  /** Whether the program reads only the hidden files that its options name or that ignore files re-include. */
  unhides?: boolean
}

/** A program whose arguments are its own options, followed by another command. */
export interface Wrapping {
  options: string
  numbers?: boolean
  /** Number of operands before the inner command, such as the duration of `timeout`. */
  operands?: number
  /** Whether `NAME=value` words may precede the inner command. */
  assigns?: boolean
  /** Whether the value of `-S` contains the words of the inner command. */
  splits?: boolean
  /** Whether the inner command receives additional, unknown words. */
  appends?: boolean
  /** Options whose value is a placeholder for unknown text in the inner command. */
  replaces?: readonly string[]
  /** Options with which the program runs no inner command. */
  looksUp?: readonly string[]
  /** Options with which the inner command starts in another directory. */
  moves?: readonly string[]
}

/** Tests a script. Every `RegExp` is a `ScriptTest`. */
export interface ScriptTest {
  test(script: string): boolean
}
