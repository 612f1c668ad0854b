import type { OptionSpec } from "./options.ts"

/** A program of which the table proves that it only reads, as long as every option is known. */
export interface ReadOnlyProgram extends OptionSpec {
  operands: "files" | "text" | "pattern, then files"
  maxOperands?: number
  /** Other options make it write or run something: its words are files like those of any program then. */
  mayWrite?: boolean
  /** Every operand has to look like this. */
  operand?: RegExp
  /** The first operand has to look like this. */
  first?: RegExp
  /** One of these options has to be there. */
  requires?: readonly string[]
  /** Reads whole directories: always, or with one of these options. */
  recursive?: "always" | readonly string[]
  /** Options with which it also reads files whose names start with a dot. Default: it always does. */
  hidden?: readonly string[]
  /** Of hidden files it reads those that it is told by name, and those that ignore files take in again. */
  unhides?: boolean
  /** It follows the links that lie in the directories. */
  followsLinks?: boolean
  /** Words that are no files, such as the brackets of `find`. */
  neutral?: readonly string[]
}
