import { statSync } from "node:fs"
import { join } from "node:path"
import { isInside, realPath } from "../util/paths.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"

/** A directory that may hold tools and the like. */
export interface ConfigDirectory {
  path: string
  scope: "user" | "project"
  /** The person's own, but in the work tree: whatever works there could have written what it holds. */
  exposed?: true
}

/**
 * The directories that may hold tools and the like, in rising precedence: the user's, then `.opencode` and `.tackle`
 * from the work tree's root down to the directory. Only those that exist.
 */
export function configDirectories(location: Location): ConfigDirectory[] {
  return possibleConfigDirectories(location).filter(({ path }) =>
    statSync(path, { throwIfNoEntry: false })?.isDirectory(),
  )
}

/** The same, whether they exist or not. */
export function possibleConfigDirectories(location: Location): ConfigDirectory[] {
  return [
    ...ownConfigDirectories(location).map((path): ConfigDirectory => {
      const exposed = isInside(realPath(path), realPath(location.worktree))
      return { path, scope: "user", ...(exposed ? { exposed } : {}) }
    }),
    ...projectDirectories(location).map((path) => ({ path, scope: "project" as const })),
  ]
}

/** The person's own, whether they exist or not. */
export function ownConfigDirectories(location: Location): string[] {
  return ["opencode", "tackle"].map((name) => join(userDirectory(location), name))
}

/** Those of the project, whether they exist or not. */
export function projectDirectories(location: Location): string[] {
  const levels = projectLevels(location)
  return [".opencode", ".tackle"].flatMap((name) => levels.map((level) => join(level, name)))
}
