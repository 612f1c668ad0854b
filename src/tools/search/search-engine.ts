import { statPath } from "../../files/open-file.ts"
import { TackleError } from "../../util/errors.ts"

/** Start of a search. A file is searched even if ignore rules exclude it. */
export interface SearchRoot {
  /** Absolute path. */
  path: string
  kind: "file" | "directory"
}

/** Returns the root for a path. Throws like `statPath`. */
export async function searchRoot(path: string): Promise<SearchRoot> {
  const found = await statPath(path, "Path")
  return { path, kind: found.isDirectory() ? "directory" : "file" }
}

/** Files to search. */
export interface FileQuery {
  root: SearchRoot
  /** Returns true for wanted paths. Receives the path relative to the root, or the name if the root is a file. */
  accepts(path: string): boolean
  signal: AbortSignal
  /** Called when a file or directory could not be read completely. */
  onUnreadable(): void
}

/** Lines to find in the files. */
export interface TextQuery extends FileQuery {
  /** Regular expression, matched line by line. */
  pattern: string
  /** A plain glob that all accepted file names match. An optimization: `accepts` decides. */
  nameGlob?: string
  /** Lines returned with text, per file. */
  maxLines: number
  /** Lines counted, per file. */
  maxCount: number
  /** Characters returned of a line. */
  maxLineLength: number
}

/** Matching lines of one file. */
export interface FileMatches {
  /** Absolute path. */
  path: string
  /** The first lines, in order. `line` counts from 1. */
  lines: { line: number; text: string }[]
  /** Number of matching lines, at most `maxCount`. */
  count: number
}

/**
 * Finds files and lines below a root. Includes hidden files; excludes `.git`, files excluded by the project's ignore
 * files, symlinks, and (for text) binary files. The order of files is undefined. Leaving the loop early stops the search.
 * Throws `AbortedError`.
 */
export interface SearchEngine {
  /** Absolute paths. */
  files(query: FileQuery): AsyncIterable<string>
  /** Throws {@link InvalidPatternError}. */
  search(query: TextQuery): AsyncIterable<FileMatches>
}

/** The regular expression is invalid. */
export class InvalidPatternError extends TackleError {
  constructor(pattern: string, reason: string) {
    super(
      `Invalid regular expression: ${pattern}\n${reason}\n` +
        "Patterns match single lines. Escape literal characters such as ( [ { . * + ? with a backslash.",
      { code: "search.pattern", recoverable: true },
    )
  }
}

/** Throws {@link InvalidPatternError} for a pattern with a line feed, which no line contains. */
export function assertSingleLine(pattern: string): void {
  if (!/(?:^|[^\\])(?:\\\\)*(?:\\n|\n)/.test(pattern)) return
  throw new InvalidPatternError(pattern, "It contains a line feed. Search for text within one line.")
}

/** The engine cannot run here. Thrown before any result, so that another engine can take over. */
export class EngineUnavailableError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "search.unavailable", recoverable: true, cause })
  }
}

/** The engine failed during the search. */
export class SearchFailedError extends TackleError {
  constructor(message: string) {
    super(message, { code: "search.failed", recoverable: true })
  }
}
