import { lstatSync, readdirSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { systemCode } from "../util/errors.ts"
import { isInside } from "../util/paths.ts"
import { type ResolvedScope, relativeToWorktree } from "./path-checks.ts"
import { deniesOf, judge, type Policy } from "./policy.ts"

/** Maximum number of entries to compare for one request. */
const maxEntries = 10_000

/**
 * The patterns that a policy denies for `read`. Also the denied files that have hard links, by an identifier of the
 * file.
 */
interface Denied {
  patterns: readonly string[]
  names?: ReadonlyMap<string, string>
}

/** Cached results by policy. Each request has its own policy object, so the results cannot become outdated. */
const known = new WeakMap<Policy, Denied>()

/**
 * Returns the absolute path of a file that a rule denies for `read` and of which `path` is another name (a hard link).
 * Searches the directories that the deny rules name, up to a limit. Does not follow links.
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

/** Returns the path that a pattern names before its first wildcard, or the directory that contains the wildcard. */
function startOf(pattern: string, { worktree, realWorktree }: ResolvedScope): string {
  const literal = /^[^*?]*(?=$|\/[^/]*[*?])/.exec(pattern)?.[0] ?? ""
  const path = resolve(realWorktree, literal)
  return isInside(path, worktree) ? join(realWorktree, relative(worktree, path)) : path
}

/** Returns the entries of a directory. Returns an empty list for other paths and for an unreadable directory. */
function entriesOf(directory: string): string[] {
  try {
    return lstatSync(directory).isDirectory()
      ? readdirSync(directory).map((name) => join(directory, name))
      : []
  } catch (error) {
    // The command cannot list this directory either.
    if (systemCode(error) === undefined) throw error
    return []
  }
}

/** Returns an identifier of a file with several names (hard links). Returns undefined for all other paths. */
export function sharedIdentity(path: string): string | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    return found?.isFile() && found.nlink > 1 ? `${found.dev}:${found.ino}` : undefined
  } catch {
    // The path cannot be a file, for example because of a zero byte.
    return undefined
  }
}
