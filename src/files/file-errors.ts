import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { systemCode, TackleError } from "../util/errors.ts"
import { editDistance } from "../util/similarity.ts"
import { showName } from "./show-name.ts"

/** Thrown if a path does not exist. The message suggests similar names, if any. */
export class PathNotFoundError extends TackleError {
  readonly path: string
  constructor(path: string, message: string) {
    super(message, { code: "file.not-found", recoverable: true })
    this.path = path
  }
}

/**
 * Thrown if a path is a pipe, socket or device, which could block or have side effects when read. Also thrown if a path
 * is a directory instead of a file.
 */
export class SpecialFileError extends TackleError {
  readonly path: string
  constructor(path: string, kind: string) {
    const problem =
      kind === "directory"
        ? `${path} is a directory, not a file. Use the path of a file in it.`
        : `${path} is a ${kind}, not a file or directory. Only files and directories can be read.`
    super(problem, {
      code: "file.special",
      recoverable: true,
    })
    this.path = path
  }
}

/** Thrown if the content of a file is binary, or is too large to attach. */
export class UnreadableContentError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.content", recoverable: true })
  }
}

/** Thrown if the requested offset is beyond the last line of a file or the last entry of a directory. */
export class OffsetError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.offset", recoverable: true })
  }
}

/**
 * Thrown if a file cannot be accessed because of a system error, such as a missing permission, a link loop, an invalid
 * name or a full disk.
 */
export class FileAccessError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.access", recoverable: true, cause })
  }
}

/** Thrown if a path that must be a directory is not a directory. */
export class NotDirectoryError extends TackleError {
  constructor(path: string) {
    super(
      `${path} is a file, not a directory. Use the path of a directory, or read the file with the read tool.`,
      {
        code: "file.not-directory",
        recoverable: true,
      },
    )
  }
}

const maxSuggestions = 3

/**
 * Creates the error for a path that does not exist. Suggests similar names in its directory. If the directory does not
 * exist either, suggests names in the deepest existing parent.
 */
export async function notFound(path: string, kind: "File" | "Path"): Promise<PathNotFoundError> {
  const shown = showName(path)
  const parent = dirname(path)
  const siblings = await entries(parent)
  if (siblings)
    return new PathNotFoundError(path, `${kind} not found: ${shown}.${suggest(parent, path, siblings)}`)

  let missing = parent
  while (dirname(missing) !== missing) {
    const directory = dirname(missing)
    const names = await entries(directory)
    if (names) {
      const why = existsSync(missing)
        ? `${showName(missing)} is not a directory that can be listed.`
        : `The directory ${showName(missing)} does not exist either.`
      const where = `${why} The nearest existing directory is ${showName(directory)}.`
      return new PathNotFoundError(
        path,
        `${kind} not found: ${shown}. ${where}${suggest(directory, missing, names)}`,
      )
    }
    missing = directory
  }
  return new PathNotFoundError(path, `${kind} not found: ${shown}.`)
}

/**
 * Returns up to three names similar to `wanted`, most similar first. Two names are similar if they differ only in case
 * or Unicode form, if one contains the other, or if a few edits turn one into the other (at most a third of the length,
 * rounded up, and at most 3).
 */
function nearNames(wanted: string, names: readonly string[]): string[] {
  const goal = folded(wanted)
  const scored = names.flatMap((name) => {
    const candidate = folded(name)
    const edits = editDistance(goal, candidate)
    const near = edits <= Math.min(3, Math.ceil(goal.length / 3))
    const contains = candidate !== "" && (candidate.includes(goal) || goal.includes(candidate))
    return near || contains ? [{ name, edits }] : []
  })
  scored.sort((a, b) => a.edits - b.edits || (a.name < b.name ? -1 : 1))
  return scored.slice(0, maxSuggestions).map(({ name }) => name)
}

function suggest(directory: string, path: string, names: readonly string[]): string {
  const near = nearNames(basename(path), names)
  if (near.length === 0) return " Use glob or list to find the right path."
  return ` Did you mean:\n${near.map((name) => showName(join(directory, name))).join("\n")}`
}

/** Returns the names in a directory, or undefined if it does not exist or cannot be listed. */
async function entries(directory: string): Promise<string[] | undefined> {
  try {
    return await readdir(directory)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase()
}
