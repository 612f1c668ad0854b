import type { Word } from "./words.ts"

/** One command that a text runs, at whatever depth. */
export interface PlannedCommand {
  /** The program and its arguments after quote removal. */
  argv: Word[]
  /** As written. */
  source: string
  /** The words joined by single blanks: what rules match. */
  pattern: string
  /** The reason why no rule narrower than `*` may allow it. */
  opaque?: string
  /** Spellings that only a deny may match: the commands that it may run. */
  denyForms: string[]
  /** It may run its input, which may be anywhere in the text. */
  runsInput?: true
  /** The directories where it may run: relative to where the text starts, absolute, or under `~`. Undefined: any. */
  directories?: readonly string[]
  /** Variables are set for it. */
  assigns: boolean
  /** Another command of the plan runs it. Its words may be files that the other command names. */
  wrapped: boolean
}

/** A file that the shell itself opens, or a value of a loop. */
export interface PlannedFile {
  kind: "read" | "write" | "mention"
  target: Word
  directories?: readonly string[]
}

/** The commands and files of a text. */
export interface ShellPlan {
  readonly commands: PlannedCommand[]
  readonly files: PlannedFile[]
  /** The reason why the text is not understood. Its commands are then those that were found nevertheless. */
  opaque?: string
  /** Where commands begin and end is not certain: some may have been missed. */
  garbled: boolean
}
