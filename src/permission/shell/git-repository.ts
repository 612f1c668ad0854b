import { type Dirent, readdirSync, type Stats, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { readRegularFile } from "../../util/file-system.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { readIndex } from "./git-index.ts"

/**
 * Returns why git in this directory could run a program even in the hardened environment, or could show files of
 * another repository. Submodules are a problem, because they have their own configuration. Configuration sections that
 * are not known to be harmless are a problem too. Reads the files of the repository instead of running git, which could
 * itself run a program. Without the hardened environment, more settings and hooks are a problem.
 */
export function repositoryProblem(
  directory: string,
  { hardened }: { hardened: boolean } = { hardened: true },
): string | undefined {
  try {
    return problemIn(directory, hardened)
  } catch (error) {
    assertReadError(error)
    return `the repository cannot be read: ${errorMessage(error)}`
  }
}

/** Throws the error again unless a file could not be read. */
function assertReadError(error: unknown): void {
  if (!(error instanceof TackleError) && systemCode(error) === undefined) throw error
}

function problemIn(directory: string, hardened: boolean): string | undefined {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const gitDirectory = findGitDirectory(root)
    if (gitDirectory === "unclear") return `the .git of ${root} cannot be parsed`
    if (gitDirectory !== undefined) {
      if (entryAt(join(root, ".gitmodules"))) return "the repository has submodules"
      return (
        belongingProblem(root, gitDirectory) ??
        configurationProblem(gitDirectory, hardened) ??
        indexProblem(gitDirectory)
      )
    }
    // A bare repository has no `.git`. Git accepts any directory that looks like a bare Git repository.
    if (entryAt(join(root, "HEAD")) && entryAt(join(root, "objects")))
      return `${root} looks like a repository`
    if (root === dirname(root)) return undefined
  }
}

/**
 * Returns true if git runs no other program in any of the directories. Returns false if the directories are unknown.
 */
export function isPlainRepository(
  directories: readonly string[] | undefined,
  environment: { hardened: boolean },
): boolean {
  for (const directory of directories ?? [])
    if (repositoryProblem(directory, environment) !== undefined) return false
  return directories !== undefined
}

/** The root of a repository, and its git directory if it can be determined. */
export interface FoundRepository {
  root: string
  gitDirectory: string | undefined
}

/** Returns the repository that contains a directory. Returns undefined outside a repository. */
export function findRepository(directory: string): FoundRepository | undefined {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const found = findGitDirectory(root)
    if (found !== undefined) return { root, gitDirectory: found === "unclear" ? undefined : found }
    if (root === dirname(root)) return undefined
  }
}

/** Configuration sections that name no programs, or only programs that the hardened environment overrides. */
const harmlessSections = new Set([
  "advice",
  "apply",
  "branch",
  "color",
  "column",
  "commit",
  "core",
  "extensions",
  "fetch",
  "format",
  "gc",
  "index",
  "init",
  "http",
  "lfs",
  "pull",
  "push",
  "rebase",
  "remote",
  "rerere",
  "url",
  "user",
])

/** Keys of harmless sections that name programs or other files and that the hardened environment does not override. */
const harmfulKeys =
  /(?:^|\])[ \t]*(?:alternaterefscommand|gitproxy|worktree|vcs|partialclonefilter|promisor|diff|external)\b/im

/** Keys of harmless sections that name programs or files and that only the hardened environment overrides. */
const overriddenKeys =
  /(?:^|\])[ \t]*(?:fsmonitor|hookspath|pager|sshcommand|askpass|editor|attributesfile|excludesfile|program|proxy\w*|ssl\w*)\b/im

/** Hooks that commands run although they only read. Git runs the first after it refreshed the index. */
const readingHooks = ["post-index-change", "fsmonitor-watchman", "reference-transaction"]

function configurationProblem(gitDirectory: string, hardened: boolean): string | undefined {
  const common = commonDirectory(gitDirectory)
  const hook = hardened ? undefined : readingHooks.find((name) => entryAt(join(common, "hooks", name)))
  if (hook !== undefined) return `the repository has the hook ${hook}`
  const gitDirectories = common === gitDirectory ? [gitDirectory] : [gitDirectory, common]
  for (const root of gitDirectories) {
    for (const name of ["config", "config.worktree"]) {
      const text = readIfThere(join(root, name))
      if (text === undefined) continue
      const section = [...text.matchAll(/\[\s*([^\]\s".]*)/g)].map((match) => (match[1] ?? "").toLowerCase())
      const unknown = section.find((entry) => !harmlessSections.has(entry))
      if (unknown !== undefined) return `the repository's configuration has a section [${unknown}]`
      const key = (harmfulKeys.exec(text) ?? (hardened ? null : overriddenKeys.exec(text)))?.[0].trim()
      if (key !== undefined) return `the repository's configuration sets ${key}`
    }
  }
  return undefined
}

/**
 * Returns why git may show files of another repository. Either the git directory is outside the root and the root is
 * not a linked worktree, or the objects are stored elsewhere.
 */
function belongingProblem(root: string, gitDirectory: string): string | undefined {
  const common = commonDirectory(gitDirectory)
  const objects = join(common, "objects")
  const within = [gitDirectory, common].every((each) => isInside(realPath(each), realPath(root)))
  if (!within && !isLinkedWorktree(root, gitDirectory, common)) return `the repository is outside ${root}`
  if (entryAt(join(objects, "info", "alternates")))
    return "the repository uses the objects of another repository"
  const entries = [...directoryEntries(objects), ...directoryEntries(join(objects, "pack"))]
  const leadsAway =
    realPath(objects) !== join(realPath(common), "objects") || entries.some((entry) => entry.isSymbolicLink())
  return leadsAway ? "the objects of the repository are outside it" : undefined
}

/**
 * Returns true for a worktree that `git worktree add` created. Its git directory in the repository names the `.git`
 * file of the worktree.
 */
function isLinkedWorktree(root: string, gitDirectory: string, common: string): boolean {
  const real = realPath(gitDirectory)
  const kept = basename(dirname(real)) === "worktrees" && dirname(dirname(real)) === realPath(common)
  const back = kept ? readIfThere(join(real, "gitdir")) : undefined
  return (
    back !== undefined && realPath(resolve(real, back.replace(/\n$/, ""))) === realPath(join(root, ".git"))
  )
}

/**
 * Returns why the index is a problem. The index determines whether git enters a submodule, even without a `.gitmodules`
 * file.
 */
function indexProblem(gitDirectory: string): string | undefined {
  const index = readIndex(gitDirectory)
  if (!index) return "the index of the repository cannot be parsed"
  return index.submodules ? "the repository has submodules" : undefined
}

/**
 * Returns the git directory: `.git` itself, or the directory that a `.git` file names. Returns undefined if git ignores
 * `.git` and searches the parent directory, and `unclear` if `.git` cannot be parsed.
 */
function findGitDirectory(root: string): string | "unclear" | undefined {
  try {
    return namedGitDirectory(root)
  } catch (error) {
    assertReadError(error)
    return "unclear"
  }
}

function namedGitDirectory(root: string): string | "unclear" | undefined {
  const path = join(root, ".git")
  const found = entryAt(path)
  if (!found) return undefined
  if (!found.isDirectory()) {
    const target = /^gitdir: ([^\r\n\0]+)\n?$/.exec(readIfThere(path) ?? "")?.[1]
    if (target === undefined) return "unclear"
    const named = resolve(root, target)
    return isRepository(named) ? named : "unclear"
  }
  if (!entryAt(join(path, "HEAD"))) return undefined
  return isRepository(path) ? path : "unclear"
}

/** Returns true for a directory that every version of git accepts as a repository. */
function isRepository(directory: string): boolean {
  const head = readIfThere(join(directory, "HEAD")) ?? ""
  if (!/^(?:ref: refs\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/.test(head)) return false
  const common = commonDirectory(directory)
  return ["objects", "refs"].every((name) => entryAt(join(common, name))?.isDirectory() === true)
}

/**
 * Returns the directory with the configuration and the objects. For a linked worktree, this is the git directory of its
 * main repository.
 */
function commonDirectory(gitDirectory: string): string {
  const text = readIfThere(join(gitDirectory, "commondir"))
  return text === undefined ? gitDirectory : resolve(gitDirectory, text.replace(/[\r\n]+$/, ""))
}

function directoryEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    ifMissing(error)
    return []
  }
}

/**
 * Returns the stats of a path. Synchronous, because one round trip through the thread pool takes longer than all
 * lookups up to the root.
 */
function entryAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    return ifMissing(error)
  }
}

function readIfThere(path: string): string | undefined {
  return readRegularFile(path, maxBytes)?.toString("utf8")
}

/** Maximum size of a file of the repository, in bytes. */
const maxBytes = 16 * 1024 * 1024

function ifMissing(error: unknown): undefined {
  const code = systemCode(error)
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error
}
