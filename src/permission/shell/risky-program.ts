/** What is risky about a program whose wildcard rule would otherwise cover all of its options. */
export interface RiskyProgram {
  /**
   * Options that run a program or write a named file, the names of one joined by `|`. A `*` at the end: and whatever
   * follows.
   */
  options?: string
  /** Options that take a value, so that it is not taken for an option, an operand or a subcommand. */
  valued?: string
  /** Options that are none of the risky ones although their names begin like one. */
  harmless?: string
  /** Options with one dash are words, as with `find`; two dashes mean the same. */
  singleDash?: boolean
  /** Options are never abbreviated. */
  whole?: boolean
  /** What follows the first operand belongs to the script or program that it names, and so does what follows these. */
  stopsAtOperand?: boolean
  stopsAfter?: string
  /**
   * Without an operand, or with `-`, it runs the program that it is given as input, which a rule allows by naming `-`. The
   * options with which it does something else.
   */
  fromInput?: string
  /** The first word is a bundle of short options even without a dash, as with `tar`. */
  leadingBundle?: boolean
  /** Operands of the kind that is a program of its own: plain ones pass, all others are risky. */
  script?: { plain: RegExp; options?: readonly string[] }
  /** Every operand has to look like this. */
  operand?: RegExp
  /** A further operand is a file that it writes. */
  maxOperands?: number
  /** Subcommands that are risky as a whole, and what is risky about single ones. */
  riskySubcommands?: string
  subcommands?: Readonly<Record<string, RiskyProgram>>
}
