import { type Dirent, existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { isIP } from "node:net"
import { basename, dirname, join, relative, resolve } from "node:path"
import { type Bounds, missingParents, type Network } from "../sandbox/bounds.ts"
import type { Rule, Ruleset } from "../schema/permission.ts"
import { systemCode } from "../util/errors.ts"
import { isDirectory, isFile } from "../util/file-system.ts"
import { isInside, realPath } from "../util/paths.ts"
import { sharedIdentity } from "./path-checks.ts"
import { allRules, deniesOf, expandPolicy, judge, namedRules, type Policy, wildcardProbe } from "./policy.ts"
import { homeSecrets, namesProtected, protectionOf } from "./protected-files.ts"
import { concerns } from "./rules.ts"
import { trackedFiles } from "./shell/git-repository.ts"
import type { KnownPrograms } from "./shell/read-only-proof.ts"

/** The input of {@link commandBounds}. Paths are absolute. */
export interface BoundsRequest {
  policy: Policy
  worktree: string
  home: string
  /** Directories in which programs create temporary files. */
  temporary: readonly string[]
  /** The engine's files and directories that commands cannot change. */
  guarded: readonly string[]
  /**
   * The user's config directories. Commands cannot change these directories, and cannot create a missing config
   * directory inside the worktree.
   */
  configDirectories: readonly string[]
  /**
   * The engine's directories that commands cannot read. Files are not supported, because a replaced file would become
   * visible.
   */
  secret: readonly string[]
  /** Directories inside the `secret` directories that commands can still read. */
  shown: readonly string[]
  /**
   * Facts about the command's programs. If only git changes files, the command can write to the git repository. If all
   * reads are judged before the command runs, the command can read the project's secrets.
   */
  programs: KnownPrograms
  scanner: TreeScanner
}

/**
 * Returns the bounds for a command. The rules that judge its request also determine its bounds:
 *
 * - If `edit` is denied in general, nothing in the worktree is writable, not even paths that narrower rules allow.
 * - Protected files are read-only and secrets are hidden, unless a rule names and allows them. For exceptions, see
 *   `programs`.
 * - Paths that are denied for `edit` are read-only, including new files in denied directories. Paths that are denied
 *   for `read` are hidden. On Linux, directories above a path that a deny rule names cannot be renamed.
 * - A missing path that a rule denies cannot be created, if the rule names it without wildcards or git tracks it.
 * - Directories that an `edit` rule allows by an absolute path are writable.
 */
export function commandBounds(request: BoundsRequest): Bounds {
  const { home, temporary, guarded, configDirectories, secret, shown, programs, scanner } = request
  const { policy, worktree, may } = accessOf(request)

  const editable = judge(policy, "edit", [wildcardProbe]).action !== "deny"
  const temporaries = temporary.filter(isDirectory).map(realPath)
  const roots = namedRoots(policy, "edit")
  const opened = roots.filter((path) => may("edit", join(path, wildcardProbe)) === "allow")
  const spelledRoots = [worktree, request.worktree] as const
  const named = {
    edit: deniedLocations(policy, "edit", { spelledRoots, areas: [worktree, ...temporaries, ...opened] }),
    read: deniedLocations(policy, "read", { spelledRoots, areas: [worktree, ...temporaries, ...opened] }),
  }
  const { protectedPaths, listings } = scanner.scan(
    worktree,
    [...named.edit, ...named.read].map(({ path }) => path),
  )
  const readOnly = protectedPaths.filter((path) => may("edit", path) !== "allow")
  const hidden = (programs.known ? [] : protectedPaths).filter(
    (path) => protectionOf(relative(worktree, path), "read") && may("read", path) !== "allow",
  )
  const reopened: string[] = []
  if (editable && deniesSome(policy, "edit")) {
    const found = deniedPaths(listings, (path) => may("edit", path) === "deny")
    readOnly.push(...found.denied)
    reopened.push(...found.excepted)
  }
  if (deniesSome(policy, "read"))
    hidden.push(...entriesOf(listings).filter((path) => may("read", path) === "deny"))
  readOnly.push(...otherNames(readOnly, listings))
  hidden.push(...otherNames(hidden, listings))
  const isFixed = (path: string) => [...readOnly, ...hidden].some((outer) => isInside(path, outer))
  const pinned = [...named.edit, ...named.read]
    .flatMap(({ path, area }) => directoriesTo(path, area))
    .filter((path) => realPath(path) === path && !isFixed(path))

  const repository = programs.git && editable ? repositoryBounds(join(worktree, ".git")) : undefined
  readOnly.push(...roots.filter((path) => may("edit", join(path, wildcardProbe)) === "deny"))
  const closed = namedRoots(policy, "read").filter(
    (path) => may("read", join(path, wildcardProbe)) === "deny",
  )
  const secrets = homeSecrets(home).flatMap((each) => (namedAndAllowed(policy, each) ? [] : [each.path]))
  const engine = existing(secret)
  const config = configDirectories.map((path) => realPath(path))
  const isDenied = (access: "read" | "edit", path: string) =>
    [path, join(path, wildcardProbe)].some((form) => may(access, form) === "deny")
  const missing = (["edit", "read"] as const).flatMap((access) => {
    const tracked = editable && deniesSome(policy, access) ? (trackedFiles(worktree)?.paths ?? []) : []
    return [...named[access].map(({ path }) => path), ...tracked].filter((path) => isDenied(access, path))
  })
  const areas = [worktree, ...temporaries, ...opened]
  const absent = [
    ...[join(worktree, ".git"), join(worktree, ".tackle")].filter((path) => may("edit", path) !== "allow"),
    ...config.filter((path) => isInside(path, worktree)),
    // A command could create the target of a link to a missing path.
    ...missing.map((path) => realPath(path)).filter((path) => areas.some((area) => isInside(path, area))),
  ].filter((path) => !existsSync(path))
  return {
    writable: [
      ...(editable ? [worktree, ...pinned, ...absent.flatMap(missingParents), ...reopened, ...opened] : []),
      ...temporaries,
      ...(repository?.writable ?? []),
    ],
    readOnly: [
      ...(editable ? [] : [worktree]),
      ...readOnly.filter((path) => !repository?.writable.includes(path)),
      ...(repository?.readOnly ?? []),
      ...existing([...guarded, ...config]),
    ],
    hidden: [...hidden, ...closed, ...existing(secrets), ...engine],
    // The worktree can be inside a hidden directory of the engine.
    shown: [...existing(shown), ...(engine.some((path) => isInside(worktree, path)) ? [worktree] : [])],
    absent: editable ? [...absent, ...(repository?.absent ?? [])] : [],
    network: networkOf(policy),
  }
}

/** The expanded policy, the resolved worktree, and the verdict on each access to a path. */
function accessOf({
  policy: rules,
  worktree: root,
  home,
}: Pick<BoundsRequest, "policy" | "worktree" | "home">) {
  const policy = expandPolicy(rules, home)
  const worktree = realPath(root)
  const spellings = (path: string) => {
    const inside = isInside(path, worktree) ? relative(worktree, path) || "." : undefined
    return inside === undefined ? [path] : [inside, path, join(root, inside)]
  }
  const may = (access: "read" | "edit", path: string) => {
    const protection = protectionOf(isInside(path, worktree) ? relative(worktree, path) : path, access)
    const counts = protection && ((rule: Rule) => namesProtected(rule.pattern, protection))
    return judge(policy, access, spellings(path), { counts }).action
  }
  return { policy, worktree, may }
}

/**
 * Returns the existing paths in the worktree that a rule denies for `edit`. A denied directory stands for its content.
 */
export function deniedEdits(
  request: Pick<BoundsRequest, "policy" | "worktree" | "home" | "scanner">,
): string[] {
  const { policy, worktree, may } = accessOf(request)
  if (!deniesSome(policy, "edit")) return []
  const { listings } = request.scanner.scan(worktree, [])
  return deniedPaths(listings, (path) => may("edit", path) === "deny").denied
}

function existing(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path)).map((path) => realPath(path))
}

/** Returns true if a rule denies some paths but not all. Every file must then be judged individually. */
function deniesSome(policy: Policy, permission: string): boolean {
  return denyRules(policy, permission).length > 0
}

function denyRules(policy: Policy, permission: string): Rule[] {
  return deniesOf(policy, permission).filter(({ pattern }) => pattern !== "*")
}

/** A path that a deny rule names before its first wildcard, and the writable area that contains the path. */
interface DeniedLocation {
  path: string
  area: string
}

/**
 * Returns the paths inside the areas that deny rules name. `spelledRoots` lists the spellings of the worktree, the
 * resolved one first.
 */
function deniedLocations(
  policy: Policy,
  permission: string,
  { spelledRoots, areas }: { spelledRoots: readonly [string, ...string[]]; areas: readonly string[] },
): DeniedLocation[] {
  const [worktree] = spelledRoots
  return denyRules(policy, permission).flatMap(({ pattern }) => {
    const literal = /^[^*?]*(?=$|\/[^/]*[*?])/.exec(pattern)?.[0] ?? ""
    const root = spelledRoots.find((each) => isInside(literal, each))
    const path = resolve(worktree, root === undefined ? literal : relative(root, literal))
    const area = areas.find((each) => path !== each && isInside(path, each))
    return literal !== "" && path !== worktree && area !== undefined ? [{ path, area }] : []
  })
}

/**
 * Returns the directories between an area and a path, including the path itself if it is a directory. bubblewrap
 * mounts each of them, because a mounted directory cannot be renamed, and a renamed directory would move a denied file
 * to a path that no rule denies.
 */
function directoriesTo(path: string, area: string): string[] {
  const found: string[] = []
  for (let each = path; each !== area; each = dirname(each)) if (isDirectory(each)) found.push(each)
  return found
}

/**
 * Returns denied paths in directories that are not denied, and allowed paths in denied directories. A directory counts
 * as denied if a new file in it would be denied. If a rule denies only the directory itself, its contents are not
 * examined.
 */
function deniedPaths(
  listings: Listings,
  isDenied: (path: string) => boolean,
): { denied: string[]; excepted: string[] } {
  const denied: string[] = []
  const excepted: string[] = []
  const states = new Map<string, "open" | "denied" | "denied by name">()
  for (const [directory, names] of [...listings].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const outer = states.get(dirname(directory)) ?? "open"
    let state = outer
    if (outer !== "denied by name") {
      const whole = isDenied(join(directory, wildcardProbe))
      state = whole ? "denied" : outer === "open" && isDenied(directory) ? "denied by name" : "open"
      if (state !== outer) (state === "open" ? excepted : denied).push(directory)
    }
    states.set(directory, state)
    if (state === "denied by name") continue
    for (const path of names.map((name) => join(directory, name)).filter((each) => !listings.has(each)))
      if (isDenied(path) !== (state === "denied")) (state === "denied" ? excepted : denied).push(path)
  }
  return { denied, excepted }
}

/** Returns the other names (hard links) of the files. */
function otherNames(files: readonly string[], listings: Listings): string[] {
  const identities = new Set(files.map(sharedIdentity))
  identities.delete(undefined)
  return identities.size === 0
    ? []
    : entriesOf(listings).filter((path) => identities.has(sharedIdentity(path)) && !files.includes(path))
}

function entriesOf(listings: Listings): string[] {
  return [...listings].flatMap(([directory, names]) => names.map((name) => join(directory, name)))
}

/**
 * Returns the existing absolute paths that rules name, either alone or followed by `/*` or `/**`, with links resolved.
 */
function namedRoots(policy: Policy, permission: string): string[] {
  const roots = allRules(policy)
    .filter((rule) => concerns(rule, permission))
    .map(({ pattern }) => pattern.replace(/\/\*{1,2}$/, ""))
    .filter((path) => path.startsWith("/") && path !== "/" && !/[*?]/.test(path))
  return [...new Set(existing(roots))]
}

/**
 * Returns true if a rule names the secret and allows it. A rule that matches the secret only through a wildcard does
 * not count.
 */
function namedAndAllowed(
  policy: Policy,
  { path, protection }: ReturnType<typeof homeSecrets>[number],
): boolean {
  const counts = (rule: Rule) => namesProtected(rule.pattern, protection)
  return judge(policy, "read", [path, join(path, wildcardProbe)], { counts }).action === "allow"
}

/**
 * Returns the repository bounds for a command in which only git changes files. Git can write objects, references and
 * the index, but not the files that make git run a program. Returns undefined if the path is not a git directory and
 * does not refer to one.
 */
function repositoryBounds(path: string): Pick<Bounds, "writable" | "readOnly" | "absent"> | undefined {
  const own = gitDirectory(path)
  if (own === undefined) return undefined
  const common = readIfFile(join(own, "commondir"))
  const shared = common === undefined ? own : resolve(own, common.trim())
  const directories = [...new Set([own, shared])]
  const fixed = directories.flatMap((directory) =>
    ["config", "config.worktree", "hooks", "info/attributes", "modules"].map((name) => join(directory, name)),
  )
  const hooks = join(shared, "hooks")
  return {
    writable: directories,
    readOnly: fixed.filter((file) => existsSync(file)),
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
  return isFile(path) ? readFileSync(path, "utf8") : undefined
}

/**
 * Returns the hosts that a command can connect to according to the `network` rules, whose patterns are host names.
 * Commands cannot connect to a host for which the rules ask, because a connection cannot wait for the user's answer.
 * Unless the network is open for all hosts, a host that resolves to a private address also needs a `private_network`
 * rule, or a `network` rule that names the address.
 */
export function networkOf(policy: Policy): Network {
  if (!allowsSomeHost(policy)) return "closed"
  const rules = allRules(policy).filter((rule) => concerns(rule, "network"))
  const allows = (host: string) => judge(policy, "network", [host], namedRules("network")).action === "allow"
  const isWhole = rules.every((rule) => rule.action === "allow" || rule.pattern === "*")
  if (isWhole && allows(wildcardProbe)) return "open"
  return {
    ...{ key: JSON.stringify(networkRules(policy)), allows },
    allowsPrivate: (host) => allowsPrivate(policy, host),
  }
}

/** Returns true if a `network` rule of the policy, and of each policy that bounds it, allows hosts. */
function allowsSomeHost({ bound, ...own }: Policy): boolean {
  const isAllow = (rule: Rule) => rule.permission === "network" && rule.action === "allow"
  return allRules(own).some(isAllow) && (bound === undefined || allowsSomeHost(bound))
}

/** Returns true if the policy, and each policy that bounds it, allows the host although its address is private. */
function allowsPrivate({ bound, ...own }: Policy, host: string): boolean {
  const verdict = (permission: string) => judge(own, permission, [host], namedRules(permission))
  const isNamed = isIP(host) !== 0 && verdict("network").rule?.pattern === host
  const isAllowed = isNamed || verdict("private_network").action === "allow"
  return isAllowed && (bound === undefined || allowsPrivate(bound, host))
}

/** Returns the policy with only the rules that decide on hosts. */
function networkRules({ layers, ceiling, bound }: Policy): Policy {
  const about = (rules: Ruleset) =>
    rules.filter((rule) => concerns(rule, "network") || concerns(rule, "private_network"))
  return {
    layers: layers.map((layer) => ({ ...layer, rules: about(layer.rules) })),
    ceiling: ceiling && about(ceiling),
    bound: bound && networkRules(bound),
  }
}

/** The names in each scanned directory, keyed by the directory's absolute path. */
type Listings = ReadonlyMap<string, readonly string[]>

/** Scans the files below a directory. Runs before each command. */
export interface TreeScanner {
  /**
   * Returns the protected paths and the directory listings in `root` and in the `first` directories, at any depth.
   * Scans the `first` directories first, because the number of scanned directories is limited.
   */
  scan(
    root: string,
    first: readonly string[],
  ): {
    /** Absolute paths of protected files and directories. Protected directories are not searched. */
    protectedPaths: readonly string[]
    listings: Listings
  }
}

/**
 * Maximum number of directories to scan. Upper levels are scanned first. Scanning a directory takes about 5 µs if it is
 * unchanged since the previous scan, and 30 µs if it has changed.
 */
const maxDirectories = 1_000

/**
 * Time in ms after which the time stamp of a directory is reliable. A directory that changed more recently can change
 * again without a new time stamp.
 */
const settledMs = 100

/** Directories in which tools create thousands of subdirectories. Only their direct entries are scanned. */
const heavy: ReadonlySet<string> = new Set(["node_modules", "target", "__pycache__", ".cache"])

/** The result of scanning one directory. */
interface Listing {
  mtimeMs: number
  settled: boolean
  names: string[]
  protectedNames: string[]
  directories: string[]
}

/**
 * Creates a scanner that does not follow links, and reads a directory again only if its time stamp has changed or is
 * too recent to be reliable.
 */
export function createTreeScanner(): TreeScanner {
  let known = new Map<string, Listing>()

  function list(directory: string, parent: string): Listing | undefined {
    const found = statSync(directory, { throwIfNoEntry: false })
    if (!found?.isDirectory()) return undefined
    const before = known.get(directory)
    if (before?.settled && before.mtimeMs === found.mtimeMs) return before
    const settled = Date.now() - found.mtimeMs > settledMs
    const listing: Listing = {
      mtimeMs: found.mtimeMs,
      settled,
      names: [],
      protectedNames: [],
      directories: [],
    }
    for (const entry of readEntries(directory)) {
      listing.names.push(entry.name)
      // Two segments are enough, because no protected path is longer.
      if (protectionOf(parent === "" ? entry.name : `${parent}/${entry.name}`, "edit"))
        listing.protectedNames.push(entry.name)
      else if (entry.isDirectory() && !heavy.has(parent)) listing.directories.push(entry.name)
    }
    return listing
  }

  return {
    scan(root, first) {
      const seen = new Map<string, Listing>()
      const waiting: { path: string; name: string }[] = [
        ...first.map((path) => ({ path, name: basename(path) })),
        { path: root, name: "" },
      ]
      for (let next = waiting.shift(); next && seen.size < maxDirectories; next = waiting.shift()) {
        const { path } = next
        const listing = seen.has(path) ? undefined : list(path, next.name)
        if (!listing) continue
        seen.set(path, listing)
        for (const name of listing.directories) waiting.push({ path: join(path, name), name })
      }
      known = seen
      const protectedPaths = [...seen].flatMap(([path, { protectedNames }]) =>
        protectedNames.map((name) => join(path, name)),
      )
      return { protectedPaths, listings: new Map([...seen].map(([path, { names }]) => [path, names])) }
    },
  }
}

/**
 * Returns the entries of a directory, or an empty array if the directory cannot be listed, because the command cannot
 * list it either.
 */
function readEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) return []
    throw error
  }
}
