import { statPath } from "../../files/open-file.ts"
import { TackleError } from "../../util/errors.ts"

/** The file or directory to search. It is searched even if ignore rules exclude it. */
export interface SearchRoot {
  /** Absolute path. */
  path: string
  kind: "file" | "directory"
}

/**
 * Returns the search root for a path. Throws the error that `statPath` throws if the path does not exist or cannot be
 * searched.
 */
export async function searchRoot(path: string): Promise<SearchRoot> {
  const found = await statPath(path, "Path")
  return { path, kind: found.isDirectory() ? "directory" : "file" }
}

/** A query for files below a root. */
export interface FileQuery {
  root: SearchRoot
  /**
   * Returns true if the file should be searched. Receives the path relative to the root, or the name if the root is a
   * file.
   */
  accepts(path: string): boolean
  signal: AbortSignal
  /** Called if a file or directory could not be read completely. */
  onUnreadable(): void
}

/** A query for matching lines in the files below a root. */
export interface TextQuery extends FileQuery {
  /** Regular expression, matched line by line. */
  pattern: string
  /** A plain glob that matches all accepted file names. It only speeds up the search: `accepts` selects the files. */
  nameGlob?: string
  /** Maximum number of lines returned with their text, per file. */
  maxLines: number
  /** Maximum number of lines counted, per file. */
  maxCount: number
  /** Maximum number of characters returned per line. */
  maxLineLength: number
}

/** Matching lines in one file. */
export interface FileMatches {
  /** Absolute path. */
  path: string
  /** The first matching lines, in order. `line` counts from 1. */
  lines: { line: number; text: string }[]
  /** Number of matching lines, at most `maxCount`. */
  count: number
}

/**
 * Finds files and lines below a root. Includes hidden files. Excludes `.git`, files excluded by the project's ignore
 * files, symlinks and, in text searches, binary files. The order of files is undefined. Breaking out of the loop stops
 * the search. Throws the error that `abortedError` returns if the signal aborts.
 */
export interface SearchEngine {
  /** Yields absolute paths. */
  files(query: FileQuery): AsyncIterable<string>
  /** Yields the matches of each file. Throws {@link InvalidPatternError} if the pattern is invalid. */
  search(query: TextQuery): AsyncIterable<FileMatches>
}

/** Thrown if the regular expression is invalid. */
export class InvalidPatternError extends TackleError {
  constructor(pattern: string, reason: string) {
    super(
      `Invalid regular expression: ${pattern}\n${reason}\n` +
        "Patterns match single lines. Escape literal characters such as ( [ { . * + ? with a backslash.",
      { code: "search.pattern", recoverable: true },
    )
  }
}

/** Throws {@link InvalidPatternError} if the pattern contains a line feed, because no line contains one. */
export function assertSingleLine(pattern: string): void {
  if (!/(?:^|[^\\])(?:\\\\)*(?:\\n|\n)/.test(pattern)) return
  throw new InvalidPatternError(pattern, "It contains a line feed. Search for text within one line.")
}

/** Thrown before any result if the engine cannot run on this machine, so that another engine can take over. */
export class EngineUnavailableError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "search.unavailable", recoverable: true, cause })
  }
}

/** Thrown if the engine fails during the search. */
export class SearchFailedError extends TackleError {
  constructor(message: string) {
    super(message, { code: "search.failed", recoverable: true })
  }
}
