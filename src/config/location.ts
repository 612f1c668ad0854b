import { existsSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { isInside } from "../util/paths.ts"

/** Where a run takes place. All paths absolute; `environment` is asked for `XDG_CONFIG_HOME` and `TACKLE_CONFIG`. */
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
