import { existsSync, readFileSync, statSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import type { Bounds } from "../sandbox/bounds.ts"
import { isInside, realPath } from "../util/paths.ts"
import { homeSecrets } from "./home-secrets.ts"
import { networkOf } from "./network.ts"
import { expandPolicy, judge, type Policy } from "./policy.ts"
import { namesProtected, protectionOf } from "./protected-files.ts"
import { concerns } from "./rules.ts"
import type { KnownPrograms } from "./shell/known-programs.ts"
import type { TreeWatch } from "./tree-watch.ts"

/** What the bounds of a command follow from. Paths absolute. */
export interface BoundsRequest {
  policy: Policy
  worktree: string
  home: string
  /** Where programs put temporary files. */
  temporary: readonly string[]
  /** Files and directories of the engine: never changed by a command. */
  guarded: readonly string[]
  /** Directories of the person's own config: the same, and where the worktree would hold one it is not made either. */
  configDirectories: readonly string[]
  /**
   * Where the engine keeps its own: no command reads it. Directories and not the files in them, since a file that is
   * replaced loses what hid it, and one that came later has nothing.
   */
  secret: readonly string[]
  /** What commands read in these all the same. */
  shown: readonly string[]
  /** Git by itself gets its repository; programs whose reads were judged see secrets of the project. */
  programs: KnownPrograms
  /** What lies in the worktree. */
  tree: TreeWatch
}

/** Never there by a rule: only patterns made of wildcards match it. */
const unnamed = "\u0000".repeat(16)

/**
 * The same rules that judge a request, as bounds for what an allowed command does: where `edit` is denied as a whole
 * nothing of the worktree can be written; protected files cannot unless a rule for `edit` names and allows them; what is
 * denied for `read`, and secrets that no rule names and allows, cannot be read; directories that a rule for `edit` names
 * by an absolute path can be written.
 */
export function commandBounds(request: BoundsRequest): Bounds {
  const { home, temporary, guarded, configDirectories, secret, shown, programs, tree } = request
  const policy = expandPolicy(request.policy, home)
  const worktree = realPath(request.worktree)
  const spellings = (path: string) => {
    const inside = isInside(path, worktree) ? relative(worktree, path) || "." : undefined
    return inside === undefined ? [path] : [inside, path, join(request.worktree, inside)]
  }
  const may = (access: "read" | "edit", path: string) => {
    const shown = isInside(path, worktree) ? relative(worktree, path) : path
    const protection = protectionOf(shown, access)
    const counts = protection && {
      counts: (rule: { pattern: string }) => namesProtected(rule.pattern, protection),
    }
    return judge(policy, access, spellings(path), counts ?? {}).action
  }

  const editable = judge(policy, "edit", [unnamed]).action !== "deny"
  const { marked, entries } = tree.look(worktree)
  const readOnly = marked.filter((path) => may("edit", path) !== "allow")
  const hidden = (programs.known ? [] : marked).filter(
    (path) => protectionOf(relative(worktree, path), "read") && may("read", path) !== "allow",
  )
  if (deniesSome(policy, "edit")) readOnly.push(...entries().filter((path) => may("edit", path) === "deny"))
  if (deniesSome(policy, "read")) hidden.push(...entries().filter((path) => may("read", path) === "deny"))

  const repository = programs.git && editable ? repositoryBounds(join(worktree, ".git")) : undefined
  const opened = namedRoots(policy, "edit").filter((path) => may("edit", join(path, unnamed)) === "allow")
  const closed = namedRoots(policy, "read").filter((path) => may("read", join(path, unnamed)) === "deny")
  const secrets = homeSecrets(home).filter((path) => !namedAndAllowed(policy, path))
  const engine = secret.filter((path) => existsSync(path)).map(realPath)
  const config = configDirectories.map((path) => realPath(path))
  const absent = [
    ...[".git", ".tackle"]
      .map((name) => join(worktree, name))
      .filter((path) => may("edit", path) !== "allow"),
    ...config.filter((path) => isInside(path, worktree)),
  ].filter((path) => !existsSync(path))
  return {
    writable: [
      ...(editable ? [worktree, ...opened] : []),
      ...temporary.filter(isDirectory).map(realPath),
      ...(repository?.writable ?? []),
    ],
    readOnly: [
      ...(editable ? [] : [worktree]),
      ...readOnly.filter((path) => !repository?.writable.includes(path)),
      ...(repository?.readOnly ?? []),
      ...[...guarded, ...config].filter((path) => existsSync(path)).map(realPath),
    ],
    hidden: [...hidden, ...closed, ...secrets.filter((path) => existsSync(path)).map(realPath), ...engine],
    shown: [
      ...shown.filter((path) => existsSync(path)).map(realPath),
      // A project may lie in what is the engine's.
      ...(engine.some((path) => isInside(worktree, path)) ? [worktree] : []),
    ],
    absent: editable ? [...absent, ...(repository?.absent ?? [])] : [],
    network: networkOf(policy),
  }
}

/** True where rules deny some of it beyond what the whole worktree says: then every file has to be looked at. */
function deniesSome(policy: Policy, permission: string): boolean {
  return rulesOf(policy).some(
    (rule) => rule.action === "deny" && rule.pattern !== "*" && concerns(rule, permission),
  )
}

/** Existing places outside that rules name by an absolute path: `/srv/data/**`, or the path alone. */
function namedRoots(policy: Policy, permission: string): string[] {
  const roots = rulesOf(policy)
    .filter((rule) => concerns(rule, permission))
    .map(({ pattern }) => pattern.replace(/\/\*{1,2}$/, ""))
    .filter((path) => path.startsWith("/") && path !== "/" && !/[*?]/.test(path) && existsSync(path))
  return [...new Set(roots.map(realPath))]
}

function rulesOf({ layers, ceiling }: Policy) {
  return [...layers.flatMap((layer) => layer.rules), ...(ceiling ?? [])]
}

/** A rule that merely covers a place of secrets does not open it. */
function namedAndAllowed(policy: Policy, path: string): boolean {
  const name = path.split("/").at(-1) ?? path
  const counts = (rule: { pattern: string }) => rule.pattern.includes(name)
  return judge(policy, "read", [path, join(path, unnamed)], { counts }).action === "allow"
}

/**
 * The repository for a command that is nothing but git: objects, references and the index may change, what makes git
 * run something may not.
 */
function repositoryBounds(path: string): Pick<Bounds, "writable" | "readOnly" | "absent"> | undefined {
  const own = gitDirectory(path)
  if (own === undefined) return undefined
  const common = readIfFile(join(own, "commondir"))
  const shared = common === undefined ? own : resolve(own, common.trim())
  const fixed = [...new Set([own, shared])].flatMap((directory) =>
    ["config", "config.worktree", "hooks", "info/attributes", "modules"].map((name) => join(directory, name)),
  )
  const hooks = join(shared, "hooks")
  return {
    writable: [...new Set([own, shared])],
    readOnly: fixed.filter((place) => existsSync(place)),
    absent: existsSync(hooks) ? [] : [hooks],
  }
}

function gitDirectory(path: string): string | undefined {
  if (isDirectory(path)) return path
  const target = /^gitdir: ([^\n]+)\n?$/.exec(readIfFile(path) ?? "")?.[1]
  const directory = target === undefined ? undefined : resolve(path, "..", target)
  return directory !== undefined && isDirectory(directory) ? realPath(directory) : undefined
}

function readIfFile(path: string): string | undefined {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path, "utf8") : undefined
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
