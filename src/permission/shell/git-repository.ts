import { type Stats, statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { systemCode } from "../../util/errors.ts"

/**
 * Why git in this directory could run a program even with the hardened environment, or nothing. The files of the
 * repository are read here; git is not asked, since that alone could run something. A section of its configuration that
 * is not known to be harmless counts, as do submodules, which have configurations of their own.
 */
export async function repositoryFault(directory: string): Promise<string | undefined> {
  for (let place = resolve(directory); ; place = dirname(place)) {
    const gitDirectory = await findGitDirectory(place)
    if (gitDirectory === "unclear") return `the .git of ${place} is not understood`
    if (gitDirectory !== undefined) {
      if (entryAt(join(place, ".gitmodules"))) return "the repository has submodules"
      return configurationFault(gitDirectory)
    }
    // A bare repository needs no `.git`: git takes any directory that looks like one.
    if (entryAt(join(place, "HEAD")) && entryAt(join(place, "objects")))
      return `${place} looks like a repository`
    if (place === dirname(place)) return undefined
  }
}

/** The root and the `.git` directory of the repository that a directory belongs to; undefined where there is none. */
export async function findRepository(
  directory: string,
): Promise<{ root: string; gitDirectory: string } | undefined> {
  for (let place = resolve(directory); ; place = dirname(place)) {
    const found = await findGitDirectory(place)
    if (found !== undefined && found !== "unclear") return { root: place, gitDirectory: found }
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

async function configurationFault(gitDirectory: string): Promise<string | undefined> {
  const common = await readIfThere(join(gitDirectory, "commondir"))
  const places = common === undefined ? [gitDirectory] : [gitDirectory, resolve(gitDirectory, common.trim())]
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

async function findGitDirectory(place: string): Promise<string | "unclear" | undefined> {
  const path = join(place, ".git")
  const found = entryAt(path)
  if (!found) return undefined
  if (found.isDirectory()) return path
  const target = /^gitdir: ([^\n]+)\n?$/.exec((await readIfThere(path)) ?? "")?.[1]
  return target === undefined ? "unclear" : resolve(place, target)
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
