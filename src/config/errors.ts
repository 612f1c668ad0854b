import { UsageError } from "../util/errors.ts"

/** A position in a config file. `file` is an absolute path or `TACKLE_CONFIG_CONTENT`; line and column start at 1. */
export interface Position {
  file: string
  line: number
  column: number
}

/** One problem in a config file. The text never contains values of the file, which could be secrets. */
export interface Problem {
  position: Position
  text: string
  /** The top-level key that contains it. Absent if it concerns the whole file. */
  section?: string
}

/**
 * Config files that cannot be used. The message has a line for each problem: `file:line:column: problem, and what to
 * do`.
 */
export class ConfigError extends UsageError {
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[], cause?: unknown) {
    super(problems.map(describeProblem).join("\n"), cause)
    this.problems = problems
  }
}

/** Formats a problem as `file:line:column: text`, which editors and terminals link. */
export function describeProblem({ position, text }: Problem): string {
  return `${position.file}:${position.line}:${position.column}: ${text}`
}

/** Returns a function that converts offsets to positions. A byte order mark takes no column. */
export function positionFinder(text: string, file: string): (offset: number) => Position {
  const starts = [text.startsWith("\uFEFF") ? 1 : 0]
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length)
  return (offset) => {
    const line = lastAtMost(starts, offset)
    return { file, line: line + 1, column: Math.max(1, offset - (starts[line] ?? 0) + 1) }
  }
}

/** Returns the index of the last of the ascending numbers up to `limit`, or 0. */
function lastAtMost(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}
