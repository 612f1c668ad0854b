import type { Word } from "./words.ts"

/** One command that a text runs, at whatever depth. */
export interface PlannedCommand {
  /** The program and its arguments after quote removal. */
  argv: Word[]
  /** As written. */
  source: string
  /** The words joined by single blanks: what rules match. */
  pattern: string
  /** Why no rule narrower than `*` may allow it. */
  opaque?: string
  /** Spellings that only a deny may match: what it may run where that is not certain. */
  denyForms: string[]
  /** It may run what it is given as input, which may stand anywhere in the text. */
  runsInput?: true
  /** Where it may run: relative to where the text starts, absolute, or under `~`. Undefined: anywhere. */
  directories?: readonly string[]
  /** Variables are set for it. */
  assigns: boolean
  /** Another command of the plan runs it: its words may be files that the other one names. */
  wrapped: boolean
}

/** A file that the shell itself opens, or a word whose files a loop goes through. */
export interface PlannedFile {
  kind: "read" | "write" | "mention"
  target: Word
  directories?: readonly string[]
}

/** All that a text would do, as far as its words tell. */
export interface ShellPlan {
  readonly commands: PlannedCommand[]
  readonly files: PlannedFile[]
  /** Why the text as a whole is not understood: then its commands are those that were found all the same. */
  opaque?: string
  /** Where commands begin and end is not certain: some may have been missed. */
  garbled: boolean
}
