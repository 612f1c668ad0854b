import { UsageError } from "../util/errors.ts"

/** Where something was written. `file` is an absolute path, or `TACKLE_CONFIG_CONTENT`; line and column from 1. */
export interface Position {
  file: string
  line: number
  column: number
}

/** One thing that is wrong in a config file. The text never holds a value of the file: it could be a secret. */
export interface Problem {
  position: Position
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
export function describeProblem({ position, text }: Problem): string {
  return `${position.file}:${position.line}:${position.column}: ${text}`
}

/** Turns offsets of a text into places. A byte order mark takes no column. */
export function positionFinder(text: string, file: string): (offset: number) => Position {
  const starts = [text.startsWith("\uFEFF") ? 1 : 0]
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length)
  return (offset) => {
    const line = lastAtMost(starts, offset)
    return { file, line: line + 1, column: Math.max(1, offset - (starts[line] ?? 0) + 1) }
  }
}

/** Index of the last of the ascending numbers that is not above `limit`; 0 where there is none. */
function lastAtMost(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}
