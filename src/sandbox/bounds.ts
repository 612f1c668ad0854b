import { existsSync } from "node:fs"
import { dirname } from "node:path"

/**
 * The files and hosts that a command can access. Paths are absolute with links resolved, except that a path in
 * `readOnly` or `hidden` may itself be a link. If paths are nested, the deepest one applies, except that everything in
 * a hidden directory is hidden unless `shown` lists it. If the same path has several kinds of access, the strictest one
 * applies.
 */
export interface Bounds {
  /** Directories whose content can be changed. All other paths are read-only. */
  writable: readonly string[]
  /** Files and directories that cannot be changed, at any location. */
  readOnly: readonly string[]
  /** Files and directories that cannot be read. */
  hidden: readonly string[]
  /** Paths inside a hidden directory that can be read. They are writable only if `writable` also lists them. */
  shown?: readonly string[]
  /** Files and directories that do not exist and that commands must not create. */
  absent: readonly string[]
  network: Network
}

/**
 * Network access for a command. `closed` allows no connections except, on Linux, over the command's own loopback. A
 * filter allows some hosts through a proxy.
 */
export type Network = "closed" | "open" | HostFilter

/** Decides which hosts a command can reach. */
export interface HostFilter {
  /** Identifies the filter. Filters with the same key make the same decisions. */
  key: string
  /** Returns true if the command can reach the host. `host` is lowercase, without a port or a trailing dot. */
  allows(host: string): boolean
  /**
   * Returns true if the command can reach an allowed host that is not on the public internet. Called with the host
   * and each private address to which the host resolves. Default: returns true only if the host is an address.
   */
  allowsPrivate?(host: string): boolean
}

/** A program to start. */
export interface Command {
  argv: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
  cwd: string
}

/** A command that runs within its bounds. */
export interface ConfinedCommand extends Command {
  /** File descriptors that the program inherits, starting at descriptor 3. */
  descriptors: readonly number[]
  /** Whether the output stays open until all of the command's processes have ended. */
  holdsOutput: boolean
  /** Call this after the start succeeds or fails. */
  started(): void
  /** Call this after all of the command's processes have ended. */
  ended(): void
}

/** A path, and the access that a command has to it. */
export interface BoundPath {
  path: string
  kind: "writable" | "readOnly" | "hidden"
}

/**
 * Returns the paths in the bounds, with outer directories first, because later mounts and rules override earlier ones.
 * Omits paths inside a hidden directory, except shown paths and the paths inside them.
 */
export function orderedPaths(bounds: Bounds): BoundPath[] {
  const shown = new Set(bounds.shown)
  const kinds = new Map<string, BoundPath["kind"]>()
  for (const path of shown) kinds.set(path, "readOnly")
  for (const path of bounds.writable) kinds.set(path, "writable")
  for (const path of [...bounds.readOnly, ...bounds.absent]) kinds.set(path, "readOnly")
  for (const path of bounds.hidden) kinds.set(path, "hidden")

  const omitted = new Set<string>()
  const ordered: BoundPath[] = []
  for (const [path, kind] of [...kinds].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const outer = nearestAbove(path, kinds)
    const inHidden = outer !== undefined && (kinds.get(outer) === "hidden" || omitted.has(outer))
    if (inHidden && !shown.has(path)) omitted.add(path)
    else ordered.push({ path, kind })
  }
  return ordered
}

/** Returns the directories above a path that do not exist, the deepest one first. */
export function missingParents(path: string): string[] {
  const parent = dirname(path)
  return existsSync(parent) ? [] : [parent, ...missingParents(parent)]
}

function nearestAbove(path: string, kinds: ReadonlyMap<string, unknown>): string | undefined {
  for (let parent = dirname(path); parent !== dirname(parent); parent = dirname(parent)) {
    if (kinds.has(parent)) return parent
  }
  return undefined
}
