import { accessSync, constants, statSync } from "node:fs"
import { delimiter, isAbsolute, join, resolve } from "node:path"
import { isInside, realPath } from "./paths.ts"

/** The locations that {@link findProgram} searches. */
export interface ProgramLocations {
  /** Directories in the format of the `PATH` variable. */
  searchPath: string
  /** Absolute path of the worktree with links resolved. */
  worktree: string
  /**
   * Whether the project is trusted. If so, the worktree's `node_modules/.bin` is searched first. Otherwise, programs
   * in the worktree are ignored.
   */
  trusted: boolean
}

/**
 * Returns the absolute path of a program, or undefined if no permitted program has this name. Searches for a plain name
 * in {@link programDirectories}. Resolves a name with a slash against the worktree.
 */
export function findProgram(name: string, locations: ProgramLocations): string | undefined {
  const candidates = name.includes("/")
    ? [resolve(locations.worktree, name)]
    : programDirectories(locations).map((directory) => join(directory, name))
  return candidates.find(
    (path) => isProgram(path) && (locations.trusted || !leadsInto(path, locations.worktree)),
  )
}

/**
 * Returns the directories for the `PATH` of started programs. If the worktree is trusted, its `node_modules/.bin` comes
 * first. Excludes relative directories, and directories in an untrusted worktree, because the system also searches
 * `PATH` for a script's interpreter.
 */
export function programDirectories({ searchPath, worktree, trusted }: ProgramLocations): string[] {
  const listed = searchPath.split(delimiter).filter(isAbsolute)
  if (!trusted) return listed.filter((directory) => !leadsInto(directory, worktree))
  return [join(worktree, "node_modules/.bin"), ...listed]
}

/**
 * Returns true if `path`, as given or with links resolved, is inside the directory. Also returns true if the path
 * cannot be resolved.
 */
function leadsInto(path: string, directory: string): boolean {
  try {
    return isInside(path, directory) || isInside(realPath(path), directory)
  } catch {
    return true
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
