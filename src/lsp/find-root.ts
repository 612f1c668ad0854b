import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { isInside } from "../util/paths.ts"

/**
 * The directory that a server gets as its project: the nearest one above the file, inside the worktree, that has one of
 * the markers; else the worktree. A file outside is served from its own directory. Paths absolute, links followed.
 */
export function findRoot(path: string, markers: readonly string[], worktree: string): string {
  if (!isInside(path, worktree)) return dirname(path)
  for (let directory = dirname(path); isInside(directory, worktree); directory = dirname(directory)) {
    if (markers.some((marker) => existsSync(join(directory, marker)))) return directory
    if (directory === dirname(directory)) break
  }
  return worktree
}
