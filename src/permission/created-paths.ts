import { cpSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { systemCode } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { type BoundsRequest, deniedEdits } from "./command-bounds.ts"

/**
 * Time in milliseconds by which the time stamp of a new file can precede the clock, because file systems use the time of
 * the last timer tick.
 */
const tickMs = 20

/**
 * Lists the paths that rules deny for `edit` before a command runs. The returned function moves the denied paths that
 * appeared since then to the directory `to`, and returns their old paths. The sandbox cannot prevent these paths,
 * because a rule such as `*.secret` does not say which names to protect. Empty directories stay, because they may be
 * placeholders of other commands.
 */
export function watchDeniedPaths(
  request: Pick<BoundsRequest, "policy" | "worktree" | "home" | "scanner">,
  to: string,
): () => string[] {
  const before = new Set(deniedEdits(request))
  const worktree = realPath(request.worktree)
  const since = Date.now() - tickMs
  return () => {
    const created = deniedEdits(request).filter((path) => !before.has(path) && isNew(path, since))
    for (const path of created) move(path, join(to, relative(worktree, path)))
    return created
  }
}

/** Returns true for a path with content that was created, or moved here, after a time. */
function isNew(path: string, since: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found || found.ctimeMs < since) return false
  return !found.isDirectory() || readdirSync(path).length > 0
}

function move(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  try {
    renameSync(from, to)
  } catch (error) {
    if (systemCode(error) !== "EXDEV") throw error
    cpSync(from, to, { recursive: true, verbatimSymlinks: true })
    rmSync(from, { recursive: true })
  }
}
