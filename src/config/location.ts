import { existsSync, statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { isInside, realPath } from "../util/paths.ts"

/**
 * The directories and environment for a run. All paths are absolute. `environment` provides `XDG_CONFIG_HOME`,
 * `TACKLE_CONFIG`, `TACKLE_CONFIG_CONTENT` and the variables that the config refers to.
 */
export interface Location {
  directory: string
  worktree: string
  home: string
  environment: Readonly<Record<string, string | undefined>>
}

/**
 * Returns the nearest directory that contains `.git`, starting at `directory`. `.git` is a directory, or a file in a
 * linked worktree or a submodule. Returns `directory` if none is found.
 */
export function findWorktree(directory: string): string {
  const start = resolve(directory)
  for (let current = start; ; ) {
    if (existsSync(join(current, ".git"))) return current
    const parent = dirname(current)
    if (parent === current) return start
    current = parent
  }
}

/** Returns the checked-out git branch of a worktree, if any. */
export async function branchOf(worktree: string): Promise<string | undefined> {
  const git = join(worktree, ".git")
  // In a linked worktree, `.git` is a file with the path of the directory.
  const link = await readFile(git, "utf8").catch(() => "")
  const directory = resolve(worktree, /^gitdir: (.+)/.exec(link)?.[1] ?? git)
  const head = await readFile(join(directory, "HEAD"), "utf8").catch(() => "")
  return /^ref: refs\/heads\/(.+)/.exec(head)?.[1]
}

/**
 * Returns the parent directory of the user's config directories: `$XDG_CONFIG_HOME` if it is an absolute path,
 * otherwise `~/.config`.
 */
export function userDirectory({ home, environment }: Location): string {
  const configured = environment.XDG_CONFIG_HOME
  return configured && isAbsolute(configured) ? configured : join(home, ".config")
}

/**
 * Lists the directories from the worktree root down to the working directory. If the working directory is outside the
 * worktree, returns only the working directory.
 */
export function projectLevels({ directory, worktree }: Location): string[] {
  if (!isInside(directory, worktree)) return [directory]
  const steps = relative(worktree, directory).split(sep).filter(Boolean)
  return [worktree, ...steps.map((_, index) => join(worktree, ...steps.slice(0, index + 1)))]
}

/** A directory that may contain tools, plugins and skills. */
export interface ConfigDirectory {
  path: string
  scope: "user" | "project"
  /**
   * Set if the user's directory is inside the worktree, where any program that works on the project could have written
   * to it.
   */
  exposed?: true
}

/**
 * Lists the existing config directories in order of increasing precedence: the user's directories, then `.opencode` and
 * `.tackle` from the worktree root down to the working directory.
 */
export function configDirectories(location: Location): ConfigDirectory[] {
  return possibleConfigDirectories(location).filter(({ path }) =>
    statSync(path, { throwIfNoEntry: false })?.isDirectory(),
  )
}

/** Lists the config directories, whether or not they exist. */
export function possibleConfigDirectories(location: Location): ConfigDirectory[] {
  return [
    ...ownConfigDirectories(location).map((path): ConfigDirectory => {
      const exposed = isInside(realPath(path), realPath(location.worktree))
      return { path, scope: "user", exposed: exposed ? true : undefined }
    }),
    ...projectDirectories(location).map((path) => ({ path, scope: "project" as const })),
  ]
}

/** Lists the user's config directories, whether or not they exist. */
export function ownConfigDirectories(location: Location): string[] {
  return ["opencode", "tackle"].map((name) => join(userDirectory(location), name))
}

/** Lists the project's config directories, whether or not they exist. */
export function projectDirectories(location: Location): string[] {
  const levels = projectLevels(location)
  return [".opencode", ".tackle"].flatMap((name) => levels.map((level) => join(level, name)))
}
