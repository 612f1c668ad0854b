import { type Dirent, type Stats, statSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { readIndex } from "./git-index.ts"

/**
 * Why git in this directory could run a program even with the hardened environment, or show what belongs to another
 * repository, or nothing. The files of the repository are read here; git is not asked, since that alone could run
 * something. A section of its configuration that is not known to be harmless counts, as do submodules, which have
 * configurations of their own.
 */
export async function repositoryProblem(directory: string): Promise<string | undefined> {
  for (let place = resolve(directory); ; place = dirname(place)) {
    const gitDirectory = await findGitDirectory(place)
    if (gitDirectory === "unclear") return `the .git of ${place} is not understood`
    if (gitDirectory !== undefined) {
      if (entryAt(join(place, ".gitmodules"))) return "the repository has submodules"
      return (
        (await belongingProblem(place, gitDirectory)) ??
        (await configurationProblem(gitDirectory)) ??
        (await indexProblem(gitDirectory))
      )
    }
    // A bare repository needs no `.git`: git takes any directory that looks like one.
    if (entryAt(join(place, "HEAD")) && entryAt(join(place, "objects")))
      return `${place} looks like a repository`
    if (place === dirname(place)) return undefined
  }
}

/** True where git runs nothing in any of the directories. False where they are not known. */
export async function isPlainRepository(directories: readonly string[] | undefined): Promise<boolean> {
  for (const directory of directories ?? [])
    if ((await repositoryProblem(directory)) !== undefined) return false
  return directories !== undefined
}

/** The root of a repository, and its `.git` directory, which is undefined where it is not understood. */
export interface FoundRepository {
  root: string
  gitDirectory: string | undefined
}

/** The repository that a directory belongs to; undefined where there is none. */
export async function findRepository(directory: string): Promise<FoundRepository | undefined> {
  for (let place = resolve(directory); ; place = dirname(place)) {
    const found = await findGitDirectory(place)
    if (found !== undefined) return { root: place, gitDirectory: found === "unclear" ? undefined : found }
    if (place === dirname(place)) return undefined
  }
}

/** Sections that hold no names of programs, or only those that the hardened environment overrides. */
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

/** Keys of `core` and `remote` that name programs or further files and that nothing overrides. */
const harmfulKeys =
  /(?:^|\])\s*(?:alternaterefscommand|gitproxy|worktree|vcs|partialclonefilter|promisor|diff|external)\b/im

async function configurationProblem(gitDirectory: string): Promise<string | undefined> {
  const common = await commonDirectory(gitDirectory)
  const places = common === gitDirectory ? [gitDirectory] : [gitDirectory, common]
  for (const place of places) {
    for (const name of ["config", "config.worktree"]) {
      const text = await readIfThere(join(place, name))
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
 * Why what git shows there may be another repository's: its directory or its objects lie elsewhere, and it is no work
 * tree that the other one knows of.
 */
async function belongingProblem(place: string, gitDirectory: string): Promise<string | undefined> {
  const common = await commonDirectory(gitDirectory)
  const objects = join(common, "objects")
  const within = [gitDirectory, common].every((each) => isInside(realPath(each), realPath(place)))
  if (!within && !(await isLinkedWorktree(place, gitDirectory, common)))
    return `the repository of ${place} lies elsewhere`
  if (entryAt(join(objects, "info", "alternates"))) return "the repository borrows the objects of another one"
  const entries = [...(await directoryEntries(objects)), ...(await directoryEntries(join(objects, "pack")))]
  const leadsAway =
    realPath(objects) !== join(realPath(common), "objects") || entries.some((entry) => entry.isSymbolicLink())
  return leadsAway ? "the objects of the repository lie elsewhere" : undefined
}

/** As `git worktree add` leaves it: the repository keeps a directory for the work tree, which names the `.git` there. */
async function isLinkedWorktree(place: string, gitDirectory: string, common: string): Promise<boolean> {
  const real = realPath(gitDirectory)
  const kept = basename(dirname(real)) === "worktrees" && dirname(dirname(real)) === realPath(common)
  const back = kept ? await readIfThere(join(real, "gitdir")) : undefined
  return (
    back !== undefined && realPath(resolve(real, back.replace(/\n$/, ""))) === realPath(join(place, ".git"))
  )
}

/** What is in the index decides whether git looks into a submodule; its `.gitmodules` may be there alone. */
async function indexProblem(gitDirectory: string): Promise<string | undefined> {
  const index = await readIndex(gitDirectory)
  if (!index) return "the index of the repository is not understood"
  return index.submodules ? "the repository has submodules" : undefined
}

/**
 * The repository's directory that stands at `.git` or is named there. Undefined where git passes over what stands there
 * and looks further up; `unclear` where that cannot be told.
 */
async function findGitDirectory(place: string): Promise<string | "unclear" | undefined> {
  const path = join(place, ".git")
  const found = entryAt(path)
  if (!found) return undefined
  if (!found.isDirectory()) {
    const target = /^gitdir: ([^\r\n\0]+)\n?$/.exec((await readIfThere(path)) ?? "")?.[1]
    if (target === undefined) return "unclear"
    const named = resolve(place, target)
    return (await isRepository(named)) ? named : "unclear"
  }
  if (!entryAt(join(path, "HEAD"))) return undefined
  return (await isRepository(path)) ? path : "unclear"
}

/** True for what every git takes for a repository. */
async function isRepository(directory: string): Promise<boolean> {
  const head = (await readIfThere(join(directory, "HEAD"))) ?? ""
  if (!/^(?:ref: refs\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\n?$/.test(head)) return false
  const common = await commonDirectory(directory)
  return ["objects", "refs"].every((name) => entryAt(join(common, name))?.isDirectory() === true)
}

/** Where a linked work tree has its configuration and objects; any other repository in its own directory. */
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

/** At once: a turn through the pool of threads costs more than all the looks from a directory up to the root. */
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
