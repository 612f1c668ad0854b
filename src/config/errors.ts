import { UsageError } from "../util/errors.ts"

/**
 * A position in a config. `file` is a path, or a name such as `TACKLE_CONFIG_CONTENT`. Lines and columns start at 1.
 */
export interface Position {
  file: string
  line: number
  column: number
}

/** A problem in a config file. The text does not quote values that could be secrets. */
export interface Problem {
  position: Position
  text: string
  /** The top-level key that contains the problem, if known. */
  section?: string
}

/**
 * Thrown if config files cannot be used. The message has one line per problem, in the form `file:line:column: problem
 * and how to fix it`.
 */
export class ConfigError extends UsageError {
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[], cause?: unknown) {
    super(problems.map(describeProblem).join("\n"), cause)
    this.problems = problems
  }
}

/** Compares two positions in one file, for sorting. */
export function byPosition(a: { position: Position }, b: { position: Position }): number {
  return a.position.line - b.position.line || a.position.column - b.position.column
}

/** Formats a problem as `file:line:column: text`. Editors and terminals turn this into a link. */
export function describeProblem({ position, text }: Problem): string {
  return `${position.file}:${position.line}:${position.column}: ${text}`
}

/** Returns a function that converts offsets to positions. A byte order mark does not count as a column. */
export function positionFinder(text: string, file: string): (offset: number) => Position {
  const starts = [text.startsWith("\uFEFF") ? 1 : 0]
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length)
  return (offset) => {
    const line = lastAtMost(starts, offset)
    return { file, line: line + 1, column: Math.max(1, offset - (starts[line] ?? 0) + 1) }
  }
}

/** Returns the index of the last number that is at most `limit`, or 0. `numbers` must be in ascending order. */
function lastAtMost(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}
