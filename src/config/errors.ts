import { UsageError } from "../util/errors.ts"

/** Where something was written. `file` is an absolute path, or `TACKLE_CONFIG_CONTENT`; line and column from 1. */
export interface Place {
  file: string
  line: number
  column: number
}

/** One thing that is wrong in a config file. The text never holds a value of the file: it could be a secret. */
export interface Problem {
  place: Place
  text: string
  /** The key at the top of the file that it stands under. Absent: it is about the file as a whole. */
  section?: string
}

/** Config files that cannot be used. The message has one line for each problem: `file:line:column: what, and what to do`. */
export class ConfigError extends UsageError {
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[], cause?: unknown) {
    super(problems.map(describeProblem).join("\n"), cause)
    this.problems = problems
  }
}

/** `file:line:column: text`, as editors and terminals link it. */
export function describeProblem({ place, text }: Problem): string {
  return `${place.file}:${place.line}:${place.column}: ${text}`
}
