import { dirname } from "node:path"
import type { Bounds } from "./bounds.ts"

/** What a place is to a command. */
export interface Placement {
  path: string
  kind: "writable" | "readOnly" | "hidden"
}

/**
 * The bounds from the outside in, as mounts and rules want them of which a later one covers an earlier. What lies in
 * something hidden is left out, but for what is shown there and what lies in that.
 */
export function placements(bounds: Bounds): Placement[] {
  const shown = new Set(bounds.shown)
  const kinds = new Map<string, Placement["kind"]>()
  for (const path of shown) kinds.set(path, "readOnly")
  for (const path of bounds.writable) kinds.set(path, "writable")
  for (const path of [...bounds.readOnly, ...bounds.absent]) kinds.set(path, "readOnly")
  for (const path of bounds.hidden) kinds.set(path, "hidden")

  const covered = new Set<string>()
  const placed: Placement[] = []
  for (const [path, kind] of [...kinds].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const outer = nearestAbove(path, kinds)
    const inHidden = outer !== undefined && (kinds.get(outer) === "hidden" || covered.has(outer))
    if (inHidden && !shown.has(path)) covered.add(path)
    else placed.push({ path, kind })
  }
  return placed
}

function nearestAbove(path: string, kinds: ReadonlyMap<string, unknown>): string | undefined {
  for (let parent = dirname(path); parent !== dirname(parent); parent = dirname(parent)) {
    if (kinds.has(parent)) return parent
  }
  return undefined
}
