import type { Word } from "./words.ts"

/** One command that a text runs, at any depth. */
export interface PlannedCommand {
  /** The program and its arguments after quote removal. */
  argv: Word[]
  /** Source text as written. */
  source: string
  /** The words joined by single blanks. Rules match this text. */
  pattern: string
  /** The reason why no rule narrower than `*` may allow it. */
  opaque?: string
  /** Commands that it may run. Only deny rules match these. */
  denyForms: string[]
  /** It may run its standard input, which can come from anywhere in the text. */
  runsInput?: true
  /** Directories in which it may run: relative to the initial directory, absolute, or under `~`. Undefined: any. */
  directories?: readonly string[]
  /** Variables are set for it. */
  assigns: boolean
  /** Another command of the plan runs it. Its words may be files that the other command names. */
  wrapped: boolean
}

/** A file that the shell itself opens, or a loop value. */
export interface PlannedFile {
  kind: "read" | "write" | "mention"
  target: Word
  directories?: readonly string[]
}

/** The commands and files of a text. */
export interface ShellPlan {
  readonly commands: PlannedCommand[]
  readonly files: PlannedFile[]
  /** Why the text could not be analysed. `commands` then lists those that were found. */
  opaque?: string
  /** Command boundaries are uncertain: some commands may be missing. */
  garbled: boolean
}
