import { existsSync, statSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { isInside, realPath } from "../util/paths.ts"

/** Where a run takes position. All paths absolute; `environment` is asked for `XDG_CONFIG_HOME` and `TACKLE_CONFIG`. */
export interface Location {
  directory: string
  worktree: string
  home: string
  environment: Readonly<Record<string, string | undefined>>
}

/** The nearest directory upwards that has `.git` (a directory, or the file of a linked work tree), else `directory`. */
export function findWorktree(directory: string): string {
  const start = resolve(directory)
  for (let current = start; ; ) {
    if (existsSync(join(current, ".git"))) return current
    const parent = dirname(current)
    if (parent === current) return start
    current = parent
  }
}

/** The directory that holds the directories of programs' own settings, `$XDG_CONFIG_HOME`. */
export function userDirectory({ home, environment }: Location): string {
  const configured = environment.XDG_CONFIG_HOME
  return configured && isAbsolute(configured) ? configured : join(home, ".config")
}

/** From the work tree's root down to the directory. */
export function projectLevels({ directory, worktree }: Location): string[] {
  if (!isInside(directory, worktree)) return [directory]
  const steps = relative(worktree, directory).split(sep).filter(Boolean)
  return [worktree, ...steps.map((_, index) => join(worktree, ...steps.slice(0, index + 1)))]
}

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
