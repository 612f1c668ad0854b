import type { InputUse } from "./risks.ts"
import type { Word } from "./words.ts"

/** One command that a command text runs, at any nesting depth. */
export interface PlannedCommand {
  /** The program and its arguments, without quotes. */
  argv: Word[]
  /** The command as written in the text. */
  source: string
  /** The words joined by single blanks. Rules match this pattern. */
  pattern: string
  /** The reason why only a rule with the pattern `*` can allow the command. */
  opaque?: string
  /** Commands that this command may run. Only deny rules are matched against them. */
  denyForms: string[]
  /** How the command uses its standard input as code. */
  inputUse?: InputUse
  /** Whether the text connects an input to the command: a redirection or the output of another command. */
  fed?: true
  /** Here-documents and here-strings that the command gets as input. */
  inputs?: readonly string[]
  /** Whether the command runs its standard input. A rule must name the input. */
  runsInput?: true
  /** Text of the command's input that may be code. The text is searched for commands and files that a rule denies. */
  code?: string
  /**
   * Directories in which the command may run: relative to the initial directory, absolute, or below `~`. Undefined if
   * they are unknown.
   */
  directories?: readonly string[]
  /** Whether the text sets variables for the command. */
  assigns: boolean
  /** Assignments for the command, as written, whose variables are not known to be harmless. A rule must name them. */
  assignments?: readonly string[]
  /** Whether the command only runs other commands of the plan. A rule that allows these commands is enough. */
  transparent?: true
  /** The previous command of the pipeline, if this command reads only the standard output of that command. */
  input?: PlannedCommand
  /**
   * The wrapper: the command of the plan that runs this command. The wrapper may name files in the words of this
   * command.
   */
  wrapper?: PlannedCommand
}

/** A file that the shell itself opens, or a loop value. */
export interface PlannedFile {
  kind: "read" | "write" | "mention"
  target: Word
  directories?: readonly string[]
}

/** The commands and files of a command text. */
export interface ShellPlan {
  readonly commands: PlannedCommand[]
  readonly files: PlannedFile[]
  /** Why the text could not be analyzed. `commands` then contains only the commands that were found in it. */
  opaque?: string
  /** Whether the boundaries between commands are uncertain. The plan may then lack commands. */
  garbled: boolean
}
