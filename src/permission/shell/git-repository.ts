import { type Dirent, type Stats, statSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { readIndex } from "./git-index.ts"

/**
 * Returns why git in this directory could run a program even with the hardened environment, or show files of another
 * repository. Reads the files of the repository without running git, which could itself run a program. Configuration
 * sections not known to be harmless are a problem, as are submodules, which have their own configuration.
 */
export async function repositoryProblem(directory: string): Promise<string | undefined> {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const gitDirectory = await findGitDirectory(root)
    if (gitDirectory === "unclear") return `the .git of ${root} cannot be parsed`
    if (gitDirectory !== undefined) {
      if (entryAt(join(root, ".gitmodules"))) return "the repository has submodules"
      return (
        (await belongingProblem(root, gitDirectory)) ??
        (await configurationProblem(gitDirectory)) ??
        (await indexProblem(gitDirectory))
      )
    }
    // A bare repository has no `.git`: git accepts any directory that looks like one.
    if (entryAt(join(root, "HEAD")) && entryAt(join(root, "objects")))
      return `${root} looks like a repository`
    if (root === dirname(root)) return undefined
  }
}

/** Returns true if git runs nothing in any of the directories. False if they are unknown. */
export async function isPlainRepository(directories: readonly string[] | undefined): Promise<boolean> {
  for (const directory of directories ?? [])
    if ((await repositoryProblem(directory)) !== undefined) return false
  return directories !== undefined
}

/** The root of a repository, and its `.git` directory if it could be resolved. */
export interface FoundRepository {
  root: string
  gitDirectory: string | undefined
}

/** Returns the repository of a directory. Undefined outside a repository. */
export async function findRepository(directory: string): Promise<FoundRepository | undefined> {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const found = await findGitDirectory(root)
    if (found !== undefined) return { root, gitDirectory: found === "unclear" ? undefined : found }
    if (root === dirname(root)) return undefined
  }
}

/** Sections that name no programs, or only programs that the hardened environment overrides. */
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

/** Keys of `core` and `remote` that name programs or other files and are not overridden. */
const harmfulKeys =
  /(?:^|\])\s*(?:alternaterefscommand|gitproxy|worktree|vcs|partialclonefilter|promisor|diff|external)\b/im

async function configurationProblem(gitDirectory: string): Promise<string | undefined> {
  const common = await commonDirectory(gitDirectory)
  const gitDirectories = common === gitDirectory ? [gitDirectory] : [gitDirectory, common]
  for (const root of gitDirectories) {
    for (const name of ["config", "config.worktree"]) {
      const text = await readIfThere(join(root, name))
      if (text === undefined) continue
      const section = [...text.matchAll(/\[\s*([^\]\s".]*)/g)].map((match) => (match[1] ?? "").toLowerCase())
      const unknown = section.find((entry) => !harmlessSections.has(entry))
      if (unknown !== undefined) return `the repository's configuration has a section [${unknown}]`
      const key = harmfulKeys.exec(text)?.[0].trim()
      if (key !== undefined) return `the repository's configuration sets ${key}`
    }
  }
  return undefined
}

/**
 * Returns why git may show files of another repository: the directory or the objects are outside, and it is not a
 * worktree of the other repository.
 */
async function belongingProblem(root: string, gitDirectory: string): Promise<string | undefined> {
  const common = await commonDirectory(gitDirectory)
  const objects = join(common, "objects")
  const within = [gitDirectory, common].every((each) => isInside(realPath(each), realPath(root)))
  if (!within && !(await isLinkedWorktree(root, gitDirectory, common)))
    return `the repository is outside ${root}`
  if (entryAt(join(objects, "info", "alternates"))) return "the repository borrows the objects of another one"
  const entries = [...(await directoryEntries(objects)), ...(await directoryEntries(join(objects, "pack")))]
  const leadsAway =
    realPath(objects) !== join(realPath(common), "objects") || entries.some((entry) => entry.isSymbolicLink())
  return leadsAway ? "the objects of the repository are outside it" : undefined
}

/**
 * Returns true for a worktree that `git worktree add` created: the repository has a directory for it that names its
 * `.git`.
 */
async function isLinkedWorktree(root: string, gitDirectory: string, common: string): Promise<boolean> {
  const real = realPath(gitDirectory)
  const kept = basename(dirname(real)) === "worktrees" && dirname(dirname(real)) === realPath(common)
  const back = kept ? await readIfThere(join(real, "gitdir")) : undefined
  return (
    back !== undefined && realPath(resolve(real, back.replace(/\n$/, ""))) === realPath(join(root, ".git"))
  )
}

/** The index decides whether git looks into a submodule. A `.gitmodules` file alone does not. */
async function indexProblem(gitDirectory: string): Promise<string | undefined> {
  const index = await readIndex(gitDirectory)
  if (!index) return "the index of the repository cannot be parsed"
  return index.submodules ? "the repository has submodules" : undefined
}

/**
 * Returns the repository directory at `.git`, or the directory that the file `.git` names. Undefined if git ignores
 * it and searches the parent. `unclear` if it cannot be parsed.
 */
async function findGitDirectory(root: string): Promise<string | "unclear" | undefined> {
  const path = join(root, ".git")
  const found = entryAt(path)
  if (!found) return undefined
  if (!found.isDirectory()) {
    const target = /^gitdir: ([^\r\n\0]+)\n?$/.exec((await readIfThere(path)) ?? "")?.[1]
    if (target === undefined) return "unclear"
    const named = resolve(root, target)
    return (await isRepository(named)) ? named : "unclear"
  }
  if (!entryAt(join(path, "HEAD"))) return undefined
  return (await isRepository(path)) ? path : "unclear"
}

/** Returns true for a directory that every version of git accepts as a repository. */
async function isRepository(directory: string): Promise<boolean> {
  const head = (await readIfThere(join(directory, "HEAD"))) ?? ""
  if (!/^(?:ref: refs\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/.test(head)) return false
  const common = await commonDirectory(directory)
  return ["objects", "refs"].every((name) => entryAt(join(common, name))?.isDirectory() === true)
}

/** Returns the directory with configuration and objects. For a linked worktree, that is the one of its repository. */
async function commonDirectory(gitDirectory: string): Promise<string> {
  const text = await readIfThere(join(gitDirectory, "commondir"))
  return text === undefined ? gitDirectory : resolve(gitDirectory, text.replace(/[\r\n]+$/, ""))
}

async function directoryEntries(directory: string): Promise<Dirent[]> {
  return readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    ifMissing(error)
    return []
  })
}

/** Synchronous: one thread pool round trip costs more than all lookups up to the root. */
function entryAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    return ifMissing(error)
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(ifMissing)
}

function ifMissing(error: unknown): undefined {
  const code = systemCode(error)
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error
}
