import { TackleError } from "../../util/errors.ts"

/** Where a search starts. A file is searched by itself, whatever the ignore rules say of it. */
export interface SearchRoot {
  /** Absolute. */
  path: string
  kind: "file" | "directory"
}

/** Which files to look at. */
export interface FileQuery {
  root: SearchRoot
  /** Says of a path relative to the root (for a file: its name) whether it is wanted. */
  accepts(path: string): boolean
  signal: AbortSignal
  /** Told when a file or directory could not be read, or not to its end: the result may lack something. */
  onUnreadable(): void
}

/** Which lines to find in them. */
export interface TextQuery extends FileQuery {
  /** A regular expression, for one line at a time. */
  pattern: string
  /** A plain glob that the names of all accepted files fit: saves work, decides nothing. */
  nameGlob?: string
  /** Lines whose text is kept, per file. */
  maxLines: number
  /** Lines that are counted, per file. */
  maxCount: number
  /** Characters kept of a line. */
  maxLineLength: number
}

/** The lines of one file that match. */
export interface FileMatches {
  /** Absolute. */
  path: string
  /** The first of them, in order. `line` counts from 1. */
  lines: { line: number; text: string }[]
  /** How many there are in all, at most `maxCount`. */
  count: number
}

/**
 * Finds files and lines below a root. Hidden files are found; `.git`, what the project's ignore files exclude, links,
 * and (when searching text) binary files are not. Files come in no particular order. Leaving the loop early stops the
 * work. Throws `AbortedError`.
 */
export interface SearchEngine {
  /** Absolute paths. */
  files(query: FileQuery): AsyncIterable<string>
  /** Throws {@link InvalidPatternError}. */
  search(query: TextQuery): AsyncIterable<FileMatches>
}

/** The regular expression cannot be used. */
export class InvalidPatternError extends TackleError {
  constructor(pattern: string, reason: string) {
    super(
      `Invalid regular expression: ${pattern}\n${reason}\n` +
        "Patterns match single lines. Escape literal characters such as ( [ { . * + ? with a backslash.",
      { code: "search.pattern", recoverable: true },
    )
  }
}

/** Throws {@link InvalidPatternError} for a pattern with a line feed, which no single line holds. */
export function assertSingleLine(pattern: string): void {
  if (!/(?:^|[^\\])(?:\\\\)*(?:\\n|\n)/.test(pattern)) return
  throw new InvalidPatternError(pattern, "It contains a line feed. Search for text within one line.")
}

/** The engine cannot work here at all. Thrown before anything is found, so that another can take over. */
export class EngineUnavailableError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "search.unavailable", recoverable: true, cause })
  }
}

/** The engine broke in the middle of its work. */
export class SearchFailedError extends TackleError {
  constructor(message: string) {
    super(message, { code: "search.failed", recoverable: true })
  }
}

/** Works with the first engine; where that is unavailable, with the second. */
export function withFallback(first: SearchEngine, second: SearchEngine): SearchEngine {
  async function* either<T>(run: (engine: SearchEngine) => AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* run(first)
      return
    } catch (error) {
      if (!(error instanceof EngineUnavailableError)) throw error
    }
    yield* run(second)
  }
  return {
    files: (query) => either((engine) => engine.files(query)),
    search: (query) => either((engine) => engine.search(query)),
  }
}
