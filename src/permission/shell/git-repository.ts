import { type Dirent, readdirSync, type Stats, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { readRegularFile } from "../../util/file-system.ts"
import { homeDirectory, isInside, realPath, resolvePath } from "../../util/paths.ts"

/**
 * How git runs in a repository.
 *
 * - `reading`: commands that only read, in the hardened environment.
 * - `plain`: commands that only read, without the hardened environment.
 * - `writing`: commands that change the repository and run all hooks and filters.
 * - `confined`: like `reading`, but a sandbox limits the programs that git starts.
 */
type GitUse = "reading" | "plain" | "writing" | "confined"

/**
 * Returns the reason why git in this directory could run a program or show files from another repository, or undefined
 * if git can do neither. Except for `confined`, submodules count as a problem, because they have their own
 * configuration, and configuration sections count as a problem unless they are known to be harmless. Reads the
 * repository's files instead of running git, which could itself run a program.
 */
export function repositoryProblem(directory: string, use: GitUse = "reading"): string | undefined {
  try {
    return problemIn(directory, use)
  } catch (error) {
    assertReadError(error)
    return `the repository cannot be read: ${errorMessage(error)}`
  }
}

/** Rethrows an error, unless it means that a file could not be read. */
function assertReadError(error: unknown): void {
  if (!(error instanceof TackleError) && systemCode(error) === undefined) throw error
}

function problemIn(directory: string, use: GitUse): string | undefined {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const gitDirectory = findGitDirectory(root)
    if (gitDirectory === "unclear") return `${join(root, ".git")} is not a valid repository or cannot be read`
    if (gitDirectory !== undefined) {
      if (use !== "confined" && entryAt(join(root, ".gitmodules"))) return "the repository has submodules"
      return (
        belongingProblem(root, gitDirectory) ??
        configurationProblem(gitDirectory, use) ??
        indexProblem(gitDirectory, use)
      )
    }
    // A bare repository has no `.git`. Git accepts any directory that looks like a bare Git repository.
    if (entryAt(join(root, "HEAD")) && entryAt(join(root, "objects")))
      return `${root} looks like a repository`
    if (root === dirname(root)) return undefined
  }
}

/**
 * Returns true if none of the directories has a {@link repositoryProblem}. Returns false if the directories are
 * unknown.
 */
export function isPlainRepository(directories: readonly string[] | undefined, use: GitUse): boolean {
  return directories?.every((directory) => repositoryProblem(directory, use) === undefined) === true
}

/**
 * Returns true if the user's or the system's configuration sets a directory for hooks. Such hooks run in every
 * repository. `environment` is git's environment. Follows included files. Also returns true if the environment contains
 * configuration, if a file cannot be read, or if the includes are nested too deeply.
 */
export function userHooks(environment: Readonly<Record<string, string | undefined>>): boolean {
  const home = environment.HOME || homeDirectory()
  const { GIT_CONFIG_COUNT: count, GIT_CONFIG_PARAMETERS: parameters } = environment
  if (count || parameters) return true
  const files = [
    environment.GIT_CONFIG_GLOBAL || join(home, ".gitconfig"),
    join(environment.XDG_CONFIG_HOME || join(home, ".config"), "git/config"),
    environment.GIT_CONFIG_SYSTEM || "/etc/gitconfig",
  ]
  return files.some((file) => setsHooks(file, home, maxIncludes))
}

/** Maximum nesting depth of included files, as in git. */
const maxIncludes = 10

function setsHooks(file: string, home: string, depth: number): boolean {
  let text: string | undefined
  try {
    text = readIfThere(file)
  } catch (error) {
    assertReadError(error)
    return true
  }
  if (text === undefined) return false
  if (depth === 0 || /hookspath/i.test(text)) return true
  const included = [...text.matchAll(/^[ \t]*path[ \t]*=[ \t]*"?([^"\r\n]+)/gim)].map(([, path = ""]) =>
    path.trim(),
  )
  return included.some((path) => setsHooks(resolvePath(path, dirname(file), home), home, depth - 1))
}

/** The root of a repository, and its git directory if it can be determined. */
export interface FoundRepository {
  root: string
  gitDirectory: string | undefined
}

/** Returns the repository that contains a directory, or undefined outside a repository. */
function findRepository(directory: string): FoundRepository | undefined {
  for (let root = resolve(directory); ; root = dirname(root)) {
    const found = findGitDirectory(root)
    if (found !== undefined) return { root, gitDirectory: found === "unclear" ? undefined : found }
    if (root === dirname(root)) return undefined
  }
}

/**
 * Configuration sections that name no programs, or only programs that the hardened environment overrides, except in the
 * keys below.
 */
const harmlessSections = new Set([
  "advice",
  // Aliases are harmless: git ignores an alias with the name of one of its own commands, and only git's own commands
  // are proved to only read.
  "alias",
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

/**
 * Matches keys in harmless sections whose value names a program or file. The hardened environment does not override
 * these keys.
 */
const harmfulKeys =
  /(?:^|\])[ \t]*(?:alternaterefscommand|gitproxy|worktree|vcs|partialclonefilter|promisor|diff|external)\b/im

/**
 * Matches keys in harmless sections whose value names a program or file. The hardened environment overrides these keys.
 * Without this environment, these keys are also problems.
 */
const overriddenKeys =
  /(?:^|\])[ \t]*(?:fsmonitor|hookspath|pager|sshcommand|askpass|editor|attributesfile|excludesfile|program|proxy\w*|ssl\w*)\b/im

/**
 * Matches keys in harmless sections whose value names a program for transfers. Also matches addresses that run a
 * command (`ext::…`).
 */
const transferKeys =
  /(?:^|\])[ \t]*(?:uploadpack|receivepack)\b|\b(?:ext|fd)::|\bcustomtransfer\b|"extension\./im

/**
 * Hooks that git runs even for commands that only read. Git runs the first of these hooks after it refreshes the index.
 */
const readingHooks = ["post-index-change", "fsmonitor-watchman", "reference-transaction"]

function configurationProblem(gitDirectory: string, use: GitUse): string | undefined {
  const common = commonDirectory(gitDirectory)
  const hooks = join(common, "hooks")
  const names = use === "writing" ? directoryEntries(hooks).map(({ name }) => name) : readingHooks
  const runs = (name: string) => !name.endsWith(".sample") && entryAt(join(hooks, name)) !== undefined
  const isHardened = use === "reading" || use === "confined"
  const hook = isHardened ? undefined : names.find(runs)
  if (hook !== undefined) return `the repository has the hook ${hook}`
  const gitDirectories = common === gitDirectory ? [gitDirectory] : [gitDirectory, common]
  for (const root of gitDirectories) {
    for (const name of ["config", "config.worktree"]) {
      const text = readIfThere(join(root, name))
      if (text === undefined) continue
      const section = [...text.matchAll(/\[\s*([^\]\s".]*)/g)].map((match) => (match[1] ?? "").toLowerCase())
      // Merge drivers are harmless, because commands that only read do not merge.
      const unknown = section.find(
        (entry) => use !== "confined" && !harmlessSections.has(entry) && (!isHardened || entry !== "merge"),
      )
      if (unknown !== undefined) return `the repository's configuration has a section [${unknown}]`
      const keys = [
        harmfulKeys,
        ...(isHardened ? [] : [overriddenKeys]),
        ...(use === "writing" ? [transferKeys] : []),
      ]
      const key = keys.map((each) => each.exec(text)?.[0].trim()).find((found) => found !== undefined)
      if (key !== undefined) return `the repository's configuration sets ${key}`
    }
  }
  return undefined
}

/**
 * Returns why git may show files from another repository, or undefined if it cannot. Either the git directory is
 * outside the root and the root is not a linked worktree, or the objects are stored elsewhere.
 */
function belongingProblem(root: string, gitDirectory: string): string | undefined {
  const common = commonDirectory(gitDirectory)
  const objects = join(common, "objects")
  const within = [gitDirectory, common].every((each) => isInside(realPath(each), realPath(root)))
  if (!within && !isLinkedWorktree(root, gitDirectory, common)) return `the repository is outside ${root}`
  if (entryAt(join(objects, "info", "alternates")))
    return "the repository uses objects from another repository"
  const entries = [...directoryEntries(objects), ...directoryEntries(join(objects, "pack"))]
  const leadsAway =
    realPath(objects) !== join(realPath(common), "objects") || entries.some((entry) => entry.isSymbolicLink())
  return leadsAway ? "the repository's objects are stored outside it" : undefined
}

/**
 * Returns true for a worktree that `git worktree add` created. Its git directory in the repository refers to the
 * worktree's `.git` file.
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
 * Returns why the index is a problem, or undefined if it is not. Git enters submodules that the index lists, even
 * without a `.gitmodules` file.
 */
function indexProblem(gitDirectory: string, use: GitUse): string | undefined {
  const index = readIndex(gitDirectory)
  if (!index) return "the repository's index is not supported or cannot be read"
  return index.submodules && use !== "confined" ? "the repository has submodules" : undefined
}

/**
 * Returns the git directory: `.git` itself, or the directory that a `.git` file names. Returns undefined if git ignores
 * `.git` and searches the parent directory, and `unclear` if `.git` is not valid or cannot be read.
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
 * Returns the stats of a path. Works synchronously, because one round trip through the thread pool takes longer than
 * all lookups up to the root.
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

/** Maximum size of a file in the repository, in bytes. */
const maxBytes = 16 * 1024 * 1024

function ifMissing(error: unknown): undefined {
  const code = systemCode(error)
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error
}

/** Maximum size of an index, in bytes. An index of this size has about half a million files. */
const maxIndexBytes = 64 * 1024 * 1024

/** Size in bytes of the stat fields, the SHA-1 and the flags of an entry (gitformat-index, versions 2 to 4). */
const entryHead = 62
const extendedFlag = 0x4000
/** Offset of the mode in an entry, and the file type in the mode of a submodule. */
const modeOffset = 24
const submoduleType = 0b1110
/**
 * Mask for the bits of the flags that contain the length of the name. If a name is longer than these bits can
 * express, all of them are set.
 */
const nameLengths = 0xfff

/** The tracked paths of a repository, relative to its root, and whether it has submodules. */
export interface GitIndex {
  paths: string[]
  submodules: boolean
}

/**
 * Returns the tracked paths of a repository, relative to its root. Returns an empty list if the index does not exist,
 * and undefined if the index cannot be read or parsed.
 */
export function trackedPaths(gitDirectory: string): string[] | undefined {
  return readIndex(gitDirectory)?.paths
}

/** Reads the index of a repository. Returns undefined if the index cannot be read or parsed. */
function readIndex(gitDirectory: string): GitIndex | undefined {
  try {
    const bytes = readRegularFile(join(gitDirectory, "index"), maxIndexBytes)
    return bytes ? parseIndex(bytes) : { paths: [], submodules: false }
  } catch (error) {
    const expected = error instanceof RangeError || error instanceof TackleError
    if (expected || systemCode(error) !== undefined) return undefined
    throw error
  }
}

/** Parses an index. Returns undefined for an unsupported format. Throws `RangeError` if the bytes end too early. */
function parseIndex(bytes: Buffer): GitIndex | undefined {
  const version = bytes.readUInt32BE(4)
  if (bytes.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return undefined
  const paths: string[] = []
  let submodules = false
  let name: Buffer = Buffer.alloc(0)
  // Version 4 abbreviates names, so a small index can contain very long names.
  let room = maxIndexBytes
  let position = 12
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const start = position
    submodules ||= bytes.readUInt32BE(start + modeOffset) >>> 12 === submoduleType
    position += entryHead
    const flags = bytes.readUInt16BE(position - 2)
    if (flags & extendedFlag) position += 2
    let kept = 0
    if (version === 4) {
      const strip = readOffset(bytes, position)
      kept = name.length - strip.value
      position = strip.next
    }
    const end = bytes.indexOf(0, position)
    if (end === -1 || kept < 0 || kept + end - position > room) return undefined
    name = Buffer.concat([name.subarray(0, kept), bytes.subarray(position, end)])
    room -= name.length
    // The check fails for a repository with a different hash length.
    if (name.length === 0 || Math.min(name.length, nameLengths) !== (flags & nameLengths)) return undefined
    paths.push(name.toString("utf8"))
    position = version === 4 ? end + 1 : start + Math.ceil((end + 1 - start) / 8) * 8
  }
  // A split index stores most of its entries in another file, so it is not supported.
  return bytes.toString("latin1", position, position + 4) === "link" ? undefined : { paths, submodules }
}

/** Decodes a number with seven bits per byte. As in pack files, each additional byte adds one to the value so far. */
function readOffset(bytes: Buffer, from: number): { value: number; next: number } {
  let next = from
  let byte = bytes.readUInt8(next++)
  let value = byte & 127
  while (byte & 128) {
    byte = bytes.readUInt8(next++)
    value = (value + 1) * 128 + (byte & 127)
  }
  return { value, next }
}

/**
 * Returns variables that stop git from running programs that a repository's configuration names: file system monitors,
 * hooks, signing programs, pagers, editors, prompts and transports. These variables also disable configuration outside
 * the repository, optional locks and submodules. They do not disable external diff programs, filters or text conversion
 * drivers: see {@link repositoryProblem}.
 */
export function hardenedGitEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "",
    GIT_NO_LAZY_FETCH: "1",
    GIT_PAGER: "cat",
    GIT_EDITOR: "false",
    GIT_ASKPASS: "false",
    GIT_CONFIG_COUNT: String(settings.length),
  }
  for (const [index, [key, value]] of settings.entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key
    environment[`GIT_CONFIG_VALUE_${index}`] = value
  }
  return environment
}

const settings: readonly (readonly [string, string])[] = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.pager", "cat"],
  ["core.sshCommand", "false"],
  ["core.askPass", "false"],
  ["core.attributesFile", "/dev/null"],
  ["credential.helper", ""],
  ["diff.ignoreSubmodules", "all"],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.x509.program", "false"],
  ["log.showSignature", "false"],
  ["protocol.allow", "never"],
  ["safe.bareRepository", "explicit"],
  ["status.submoduleSummary", "false"],
]

/**
 * Returns the repository that contains a directory, or undefined outside a repository. `paths` lists the absolute paths
 * of the tracked files, if known.
 */
export function trackedFiles(directory: string): { root: string; paths: string[] | undefined } | undefined {
  const repository = findRepository(directory)
  if (!repository) return undefined
  const { root, gitDirectory } = repository
  const tracked = gitDirectory === undefined ? undefined : trackedPaths(gitDirectory)
  return { root, paths: tracked?.map((path) => join(root, path)) }
}
