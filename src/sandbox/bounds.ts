import { dirname } from "node:path"

/**
 * The files and hosts that a command can access, as plain data. Paths are absolute with links followed. For nested paths
 * the deeper one applies, for equal paths the stricter one.
 */
export interface Bounds {
  /** Directories whose content can be changed. Everything else is read-only. */
  writable: readonly string[]
  /** Files and directories that cannot be changed, wherever they are. */
  readOnly: readonly string[]
  /** Files and directories that cannot be read. */
  hidden: readonly string[]
  /** Paths inside a hidden directory that can be read. They are writable only if `writable` lists them too. */
  shown?: readonly string[]
  /** Directories that do not exist and that the command must not create. */
  absent: readonly string[]
  network: Network
}

/** `closed`: only the loopback of the command itself. A filter opens some hosts through a proxy. */
export type Network = "closed" | "open" | HostFilter

/** Decides for each host whether the network is open. */
export interface HostFilter {
  /** Equal for filters that decide equally. */
  key: string
  /** Returns true for a host that can be reached. Names are lower case, without a port or a final dot. */
  allows(host: string): boolean
}

/** A program to start. */
export interface Command {
  argv: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
  cwd: string
}

/** A command that is confined to its bounds. */
export interface ConfinedCommand extends Command {
  /** Descriptors that the program inherits as 3 and up. */
  descriptors: readonly number[]
  /** Whether its output stays open until all of its processes have ended. */
  holdsOutput: boolean
  /** Must be called after the start succeeded or failed. */
  started(): void
  /** Must be called after all of its processes have ended. */
  ended(): void
}

/** A path and its access. */
export interface BoundPath {
  path: string
  kind: "writable" | "readOnly" | "hidden"
}

/**
 * Returns the paths of the bounds with outer directories first, for mounts and rules where a later one overrides an
 * earlier one. Omits paths inside a hidden directory, except shown paths and the paths inside those.
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

function nearestAbove(path: string, kinds: ReadonlyMap<string, unknown>): string | undefined {
  for (let parent = dirname(path); parent !== dirname(parent); parent = dirname(parent)) {
    if (kinds.has(parent)) return parent
  }
  return undefined
}
