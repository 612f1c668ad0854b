import { existsSync, lstatSync, readdirSync, statSync } from "node:fs"
import { dirname, join, normalize, relative, resolve } from "node:path"
import { errorMessage, systemCode } from "../util/errors.ts"
import { directoryEntries, isDirectory, isFile, isTemporaryName } from "../util/file-system.ts"
import { type FollowedPath, followPath, isInside, realPath } from "../util/paths.ts"
import { deniesOf, judge, type Policy } from "./policy.ts"
import {
  namesProtected,
  type Protection,
  protectionIn,
  protectionInHome,
  protectionOf,
} from "./protected-files.ts"
import type { Check, Scope } from "./request.ts"

/** A scope with resolved paths, for one request. */
export interface ResolvedScope {
  worktree: string
  realWorktree: string
  /** Returns the session's resolved directories. Resolves them on first use, because most paths are in the worktree. */
  realOwn(): readonly string[]
  /** Returns the resolved guarded paths. Resolves them on first use, because only changes need them. */
  realGuarded(): readonly string[]
  /** Resolves a path once per request, so that all checks of the request refer to the same file. */
  follow(path: string): Followed
  listing: Listing
  /** The home directory as given, and with links resolved. */
  homes: readonly string[]
}

/** The number of directory entries that the remaining checks of the request may list. */
export interface Listing {
  left: number
}

/**
 * Maximum number of directory entries that the checks of one request list. Listing this many entries takes about a
 * second.
 */
const maxListed = 30_000

type Followed = FollowedPath | { problem: string }

/**
 * Resolves the paths of a scope. Throws the system error if the worktree or the home directory cannot be resolved.
 */
export function resolveScope(scope: Scope, home: string): ResolvedScope {
  const known = new Map<string, FollowedPath>()
  const results = new Map<string, Followed>()
  let own: readonly string[] | undefined
  let guarded: readonly string[] | undefined
  return {
    worktree: resolve(scope.worktree),
    realWorktree: followPath(scope.worktree, known).real,
    listing: { left: maxListed },
    homes: unique([home, followPath(home, known).real]),
    realOwn() {
      own ??= scope.own.map((directory) => realPath(directory))
      return own
    },
    realGuarded() {
      guarded ??= (scope.guarded ?? []).map((directory) => realPath(directory))
      return guarded
    },
    follow(path) {
      const found = results.get(path) ?? follow(path, known)
      results.set(path, found)
      return found
    },
  }
}

/**
 * Returns the checks for reading or changing a file at an absolute path: one for the path as written, one for the
 * resolved path if a link leads to a different path, and `external_directory` checks for a path outside the worktree.
 * Reading in one of the session's directories needs no `external_directory` check.
 */
export function fileChecks(access: "read" | "edit", path: string, scope: ResolvedScope): Check[] {
  const written = normalize(path)
  const followed = scope.follow(path)
  if ("problem" in followed)
    return [
      unresolved(access, written, followed.problem),
      unresolved("external_directory", written, followed.problem),
    ]

  const { real } = followed
  const own = !isInside(real, scope.realWorktree) && isInScope(real, scope)
  const writtenForms = spellings(written, scope.worktree)
  const realForms = spellings(real, scope.realWorktree)
  const locations = sameLocation(written, real, scope)
    ? [{ shown: written, forms: unique([...writtenForms, ...realForms]) }]
    : [
        { shown: written, forms: writtenForms },
        { shown: real, forms: unique([...realForms, ...underWorktree(real, scope)]) },
      ]
  const protection = protectionAt(access, written, real, scope)
  const checks = locations.map(({ shown, forms }): Check => {
    return {
      permission: access,
      pattern: forms[0] ?? shown,
      forms,
      // On a case-insensitive file system, the lower-case path names the same file.
      options: {
        denyForms: forms.map((form) => form.toLowerCase()).filter((form) => !forms.includes(form)),
        counts: protection && ((rule) => namesProtected(rule.pattern, protection)),
      },
      resolved: real,
      own: own && access === "read" && !protection,
      reason: protection?.reason,
      protection: protection?.reason,
    }
  })
  // The session can read its own directories without asking, but must ask before it changes them.
  const bounds: ResolvedScope = access === "read" ? scope : { ...scope, realOwn: () => [] }
  return [...checks, ...outsideChecks(written, real, bounds)]
}

/**
 * Returns `external_directory` checks for a path that leads outside the worktree and the session's directories. Returns
 * one check for the resolved path and, if the path as written is also outside, one check for the path as written.
 */
export function externalChecks(path: string, scope: ResolvedScope): Check[] {
  const written = normalize(path)
  const followed = scope.follow(path)
  return "problem" in followed
    ? [unresolved("external_directory", written, followed.problem)]
    : outsideChecks(written, followed.real, scope)
}

/**
 * Returns `external_directory` checks for a path that is already resolved. Resolving the path again could give a
 * different result.
 */
function outsideChecks(written: string, real: string, scope: ResolvedScope): Check[] {
  if (isInScope(real, scope)) return []
  const outside = isInside(written, scope.worktree) ? [real] : unique([real, written])
  return outside.map((location): Check => {
    const directory = isDirectory(location) ? location : dirname(location)
    const pattern = directory === "/" ? "/*" : `${directory}/*`
    return {
      permission: "external_directory",
      pattern,
      forms: [pattern, location],
      options: {},
      resolved: real,
      remember: /[*?]/.test(directory) ? undefined : [pattern],
    }
  })
}

/** Returns true if the resolved path exists. */
export function pathExists(path: string, scope: ResolvedScope): boolean {
  const followed = scope.follow(path)
  return !("problem" in followed) && followed.exists
}

/** Returns true if the resolved path is in the worktree or in one of the session's directories. */
export function isWithinScope(path: string, scope: ResolvedScope): boolean {
  const followed = scope.follow(path)
  return !("problem" in followed) && isInScope(followed.real, scope)
}

function isInScope(real: string, { realWorktree, realOwn }: ResolvedScope): boolean {
  return isInside(real, realWorktree) || realOwn().some((directory) => isInside(real, directory))
}

/** Returns the path relative to the worktree. Returns a path outside the worktree unchanged. */
export function relativeToWorktree(path: string, scope: ResolvedScope): string {
  const inside = [scope.worktree, scope.realWorktree].find((root) => isInside(path, root))
  return inside === undefined ? path : relative(inside, path)
}

/** Resolves links segment by segment, so that `..` after a link means the parent of the link's target. */
function follow(path: string, known: Map<string, FollowedPath>): Followed {
  try {
    const segments = path.split("/")
    if (!segments.includes("..")) return followPath(path, known)
    let real = "/"
    for (const segment of segments) {
      if (segment === "" || segment === ".") continue
      real = segment === ".." ? dirname(real) : followPath(join(real, segment), known).real
    }
    return { real, exists: existsSync(path) }
  } catch (error) {
    return { problem: `the path cannot be resolved: ${errorMessage(error)}` }
  }
}

/** Returns a check for a path that cannot be resolved. Only the user can allow the check, not a rule. */
function unresolved(permission: string, path: string, reason: string): Check {
  const options = { counts: () => false }
  return {
    permission,
    pattern: path,
    forms: [path],
    options,
    reason,
    onlyOnce: "no rule can allow this path",
  }
}

function sameLocation(written: string, real: string, scope: ResolvedScope): boolean {
  if (written === real) return true
  if (!isInside(written, scope.worktree) || !isInside(real, scope.realWorktree)) return false
  return relative(scope.worktree, written) === relative(scope.realWorktree, real)
}

/** Returns the absolute path, preceded by the path relative to the root if the path is inside the root. */
function spellings(path: string, root: string): string[] {
  return isInside(path, root) ? [relative(root, path) || ".", path] : [path]
}

/**
 * Returns the resolved path with the worktree spelled as the user wrote it. Returns an empty list for a path outside
 * the worktree.
 */
function underWorktree(real: string, scope: ResolvedScope): string[] {
  return isInside(real, scope.realWorktree) ? [join(scope.worktree, relative(scope.realWorktree, real))] : []
}

function protectionAt(
  access: "read" | "edit",
  written: string,
  real: string,
  scope: ResolvedScope,
): Protection | undefined {
  return (
    protectionOf(relativeToWorktree(real, scope), access) ??
    protectionOf(relativeToWorktree(written, scope), access) ??
    protectionInHome(real, scope.homes) ??
    protectionInHome(written, scope.homes) ??
    (access === "edit" ? protectionIn(scope.realGuarded(), real) : undefined) ??
    linkedProtection(access, real, scope)
  )
}

/**
 * Returns the protection for a file with several hard links. The system cannot list the other names of a file, so every
 * file with several hard links is protected against changes. For reads, the file is compared with the protected files
 * in its directory and in the parent directories, up to the root of the worktree.
 */
function linkedProtection(
  access: "read" | "edit",
  real: string,
  scope: ResolvedScope,
): Protection | undefined {
  if (!isFile(real)) return undefined
  const found = statSync(real)
  if (found.nlink < 2) return undefined
  if (access === "edit" && hasOtherName(real))
    return { reason: "the file has another name (a hard link)", marker: real.toLowerCase() }
  for (
    let directory = dirname(real);
    isInside(directory, scope.realWorktree);
    directory = dirname(directory)
  ) {
    for (const name of readdirSync(directory)) {
      const protection = protectionOf(name, access)
      if (!protection) continue
      const other = lstatSync(join(directory, name))
      if (other.ino === found.ino && other.dev === found.dev) return protection
    }
  }
  return undefined
}

/**
 * Returns true if a file has other names (hard links) besides its temporary backups. These backups are in the same
 * directory while another call or process changes the file.
 */
function hasOtherName(real: string): boolean {
  // A backup may disappear after the directory is read.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const backups = directoryEntries(dirname(real))
      .filter(({ name }) => isTemporaryName(name))
      .map(({ name }) => lstatSync(join(dirname(real), name), { throwIfNoEntry: false }))
    const { ino, dev, nlink } = statSync(real)
    if (nlink <= 1 + backups.filter((backup) => backup?.ino === ino && backup.dev === dev).length)
      return false
  }
  return true
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}

/** Maximum number of paths to compare for one request. */
const maxEntries = 10_000

/**
 * The patterns that a policy denies for `read`, and the paths of the denied files with several hard links, keyed by
 * {@link sharedIdentity}.
 */
interface Denied {
  patterns: readonly string[]
  names?: ReadonlyMap<string, string>
}

/** Cached results, keyed by policy. Each request has its own policy object, so the results cannot become outdated. */
const known = new WeakMap<Policy, Denied>()

/**
 * Returns the absolute path of a file that a rule denies for `read`, if `path` is another name (a hard link) of that
 * file. Searches the directories that the deny rules name, up to a limit. Does not follow links.
 */
export function deniedName(path: string, scope: ResolvedScope, policy: Policy): string | undefined {
  const denied = known.get(policy) ?? { patterns: deniesOf(policy, "read").map(({ pattern }) => pattern) }
  known.set(policy, denied)
  if (denied.patterns.length === 0) return undefined
  const identity = sharedIdentity(path)
  if (identity === undefined) return undefined
  denied.names ??= findNames(denied.patterns, scope, policy)
  return denied.names.get(identity)
}

function findNames(
  patterns: readonly string[],
  scope: ResolvedScope,
  policy: Policy,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  const waiting = [...new Set(patterns.map((pattern) => startOf(pattern, scope)))]
  let seen = 0
  for (let path = waiting.shift(); path !== undefined && seen < maxEntries; path = waiting.shift()) {
    seen += 1
    waiting.push(...entriesOf(path).slice(0, maxEntries - waiting.length))
    const identity = sharedIdentity(path)
    if (
      identity !== undefined &&
      judge(policy, "read", [relativeToWorktree(path, scope), path]).action === "deny"
    )
      names.set(identity, path)
  }
  return names
}

/**
 * Returns the path that a pattern names or, for a pattern with wildcards, the directory that contains the first one.
 */
function startOf(pattern: string, { worktree, realWorktree }: ResolvedScope): string {
  const literal = /^[^*?]*(?=$|\/[^/]*[*?])/.exec(pattern)?.[0] ?? ""
  const path = resolve(realWorktree, literal)
  return isInside(path, worktree) ? join(realWorktree, relative(worktree, path)) : path
}

/** Returns the paths of a directory's entries, or an empty array if the path is not a directory or cannot be read. */
function entriesOf(directory: string): string[] {
  try {
    return lstatSync(directory).isDirectory()
      ? readdirSync(directory).map((name) => join(directory, name))
      : []
  } catch (error) {
    // The call cannot list this directory either.
    if (systemCode(error) === undefined) throw error
    return []
  }
}

/** Returns an identifier for a file with several names (hard links), or undefined for any other path. */
export function sharedIdentity(path: string): string | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    return found?.isFile() && found.nlink > 1 ? `${found.dev}:${found.ino}` : undefined
  } catch {
    // The path is not accessible, or is invalid, for example because of a zero byte.
    return undefined
  }
}
