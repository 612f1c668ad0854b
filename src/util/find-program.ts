import { accessSync, constants, statSync } from "node:fs"
import { delimiter, isAbsolute, join, resolve } from "node:path"
import { isInside, realPath } from "./paths.ts"

/** Directories in which programs are searched. */
export interface ProgramLocations {
  /** `PATH`. */
  searchPath: string
  /** Absolute path with links resolved. */
  worktree: string
  /** False: programs in the worktree are ignored. True: its `node_modules/.bin` is searched first. */
  trusted: boolean
}

/**
 * Returns the absolute path of a program, or undefined if none may be run. A name is searched in the directories. A name
 * with a slash is a path relative to the worktree.
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
 * Returns the `PATH` for started programs: without relative directories, and without those in an untrusted worktree. The
 * interpreter of a script is searched there too.
 */
export function programDirectories({ searchPath, worktree, trusted }: ProgramLocations): string[] {
  const listed = searchPath.split(delimiter).filter(isAbsolute)
  if (!trusted) return listed.filter((directory) => !leadsInto(directory, worktree))
  return [join(worktree, "node_modules/.bin"), ...listed]
}

/** Checks the path as written and with links followed. A path that cannot be resolved counts as inside. */
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
