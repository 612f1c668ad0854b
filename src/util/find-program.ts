import { accessSync, constants, statSync } from "node:fs"
import { delimiter, isAbsolute, join, resolve } from "node:path"
import { isInside, realPath } from "./paths.ts"

/** Where programs may come from. */
export interface ProgramLocations {
  /** `PATH`. */
  searchPath: string
  /** Absolute, links followed. */
  worktree: string
  /** False: nothing that lies in the worktree is run. True: its `node_modules` is looked into first. */
  trusted: boolean
}

/**
 * The program's absolute path, or undefined where there is none that may be run. A name is looked for in the
 * directories; what has a slash in it is a path, relative to the worktree.
 */
export function findProgram(name: string, places: ProgramLocations): string | undefined {
  const candidates = name.includes("/")
    ? [resolve(places.worktree, name)]
    : programDirectories(places).map((directory) => join(directory, name))
  return candidates.find((path) => isProgram(path) && (places.trusted || !leadsInto(path, places.worktree)))
}

/**
 * `PATH` for what is started: without relative directories, and without those of a worktree that is not trusted. A
 * script's own interpreter is looked for there too.
 */
export function programDirectories({ searchPath, worktree, trusted }: ProgramLocations): string[] {
  const listed = searchPath.split(delimiter).filter(isAbsolute)
  if (!trusted) return listed.filter((directory) => !leadsInto(directory, worktree))
  return [join(worktree, "node_modules/.bin"), ...listed]
}

/** As written or behind its links. What cannot be resolved counts as inside. */
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
