import { existsSync, lstatSync, readdirSync, statSync } from "node:fs"
import { dirname, join, normalize, relative, resolve } from "node:path"
import { errorMessage, systemCode } from "../util/errors.ts"
import { type FollowedPath, followPath, isInside, realPath } from "../util/paths.ts"
import { namesProtected, type Protection, protectionIn, protectionOf } from "./protected-files.ts"
import type { Check, Scope } from "./request.ts"

/** A scope with its links followed, for one request. */
export interface ResolvedScope {
  worktree: string
  realWorktree: string
  /** Looked up when it is first needed: most paths lie in the worktree. */
  realOwn(): readonly string[]
  /** Looked up when something is to be changed. */
  realGuarded(): readonly string[]
  /**
   * Where a path leads, or why that cannot be told. Each path is looked up once, so that all checks of a request are
   * about the same file.
   */
  follow(path: string): Followed
}

type Followed = FollowedPath | { problem: string }

/** Throws what the system throws where the worktree cannot be resolved. */
export function resolveScope(scope: Scope): ResolvedScope {
  const known = new Map<string, FollowedPath>()
  return {
    worktree: resolve(scope.worktree),
    realWorktree: followPath(scope.worktree, known).real,
    realOwn: once(() => scope.own.map((directory) => realPath(directory))),
    realGuarded: once(() => (scope.guarded ?? []).map((directory) => realPath(directory))),
    follow: follower(known),
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function follower(known: Map<string, FollowedPath>): (path: string) => Followed {
  const results = new Map<string, Followed>()
  return (path) => {
    const found = results.get(path) ?? follow(path, known)
    results.set(path, found)
    return found
  }
}

/**
 * What reading or changing a file asks for: one check for the path as written and one for where its links lead, where
 * those differ, both to be allowed; and `external_directory` for what lies outside. The path is absolute; `..` in it
 * is followed as the system does, after the links before it.
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
  const inside = isInside(real, scope.realWorktree)
  const own = !inside && scope.realOwn().some((directory) => isInside(real, directory))
  const locations = sameLocation(written, real, scope)
    ? [
        {
          shown: written,
          forms: unique([...spell(written, scope.worktree), ...spell(real, scope.realWorktree)]),
        },
      ]
    : [
        { shown: written, forms: spell(written, scope.worktree) },
        { shown: real, forms: unique([...spell(real, scope.realWorktree), ...respelled(real, scope)]) },
      ]
  const protection = protectionAt(access, written, real, scope)
  const checks = locations.map(({ shown, forms }): Check => {
    const check: Check = {
      permission: access,
      pattern: forms[0] ?? shown,
      forms,
      // Where names have no case, a file that is denied has others.
      options: { denyForms: forms.map((form) => form.toLowerCase()).filter((form) => !forms.includes(form)) },
      resolved: real,
    }
    if (own && access === "read" && !protection) check.own = true
    if (!protection) return check
    return {
      ...check,
      options: { ...check.options, counts: (rule) => namesProtected(rule.pattern, protection) },
      reason: protection.reason,
      protection: protection.reason,
    }
  })
  // To be read without a question is no leave to be changed.
  const bounds: ResolvedScope = access === "read" ? scope : { ...scope, realOwn: () => [] }
  return [...checks, ...leavingChecks(written, real, bounds)]
}

/** `external_directory` for a path that lies outside the worktree, as written or after its links; else nothing. */
export function externalChecks(path: string, scope: ResolvedScope): Check[] {
  const written = normalize(path)
  const followed = scope.follow(path)
  return "problem" in followed
    ? [unresolved("external_directory", written, followed.problem)]
    : leavingChecks(written, followed.real, scope)
}

/** Of links that were followed before: what a second look would find may be something else. */
function leavingChecks(written: string, real: string, scope: ResolvedScope): Check[] {
  if (liesWithin(real, scope)) return []
  const outside = isInside(written, scope.worktree) ? [real] : unique([real, written])
  return outside.map((location): Check => {
    const directory = isDirectory(location) ? location : dirname(location)
    const pattern = directory === "/" ? "/*" : `${directory}/*`
    const check: Check = {
      permission: "external_directory",
      pattern,
      forms: [pattern, location],
      options: {},
      resolved: real,
    }
    if (!/[*?]/.test(directory)) check.remember = [pattern]
    return check
  })
}

/** True if something is there, links followed. */
export function pathExists(path: string, scope: ResolvedScope): boolean {
  const followed = scope.follow(path)
  return "problem" in followed ? false : followed.exists
}

/** True if the path, links followed, lies in the worktree or in a directory of the session. */
export function isWithinScope(path: string, scope: ResolvedScope): boolean {
  const followed = scope.follow(path)
  if ("problem" in followed) return false
  return liesWithin(followed.real, scope)
}

function liesWithin(real: string, { realWorktree, realOwn }: ResolvedScope): boolean {
  return isInside(real, realWorktree) || realOwn().some((directory) => isInside(real, directory))
}

/** The path from the worktree's root, or absolute outside: what {@link protectionOf} takes. */
export function relativeToWorktree(path: string, scope: ResolvedScope): string {
  const inside = [scope.worktree, scope.realWorktree].find((root) => isInside(path, root))
  return inside === undefined ? path : relative(inside, path)
}

/** Follows links step by step, so that `..` leaves the directory that a link leads to, not the one the link lies in. */
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
    return { problem: `it cannot be resolved: ${errorMessage(error)}` }
  }
}

/** Nothing but a person can allow what cannot be resolved. */
function unresolved(permission: string, path: string, reason: string): Check {
  return { permission, pattern: path, forms: [path], options: { counts: () => false }, reason }
}

function sameLocation(written: string, real: string, scope: ResolvedScope): boolean {
  if (written === real) return true
  if (!isInside(written, scope.worktree) || !isInside(real, scope.realWorktree)) return false
  return relative(scope.worktree, written) === relative(scope.realWorktree, real)
}

/** Relative to the root where it lies inside, and absolute. */
function spell(path: string, root: string): string[] {
  return isInside(path, root) ? [relative(root, path) || ".", path] : [path]
}

/** A path of the real worktree under the name that the worktree goes by. */
function respelled(real: string, scope: ResolvedScope): string[] {
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
    (access === "edit" ? protectionIn(scope.realGuarded(), real) : undefined) ??
    linkedProtection(access, real, scope)
  )
}

/**
 * A file with several names may be a protected one under another name. Which names there are cannot be asked of the
 * system: for a change any further name counts, for reading the files of the directories up to the worktree's root are
 * compared.
 */
function linkedProtection(
  access: "read" | "edit",
  real: string,
  scope: ResolvedScope,
): Protection | undefined {
  const found = statIfThere(real)
  if (!found?.isFile() || found.nlink < 2) return undefined
  if (access === "edit")
    return { reason: "the file has a second name elsewhere (a hard link)", marker: real.toLowerCase() }
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

/** True for an existing directory, also behind a link. */
export function isDirectory(path: string): boolean {
  return statIfThere(path)?.isDirectory() === true
}

function statIfThere(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOTDIR" || code === "EACCES") return undefined
    throw error
  }
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}
