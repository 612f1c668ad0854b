import type { FoundItem } from "../permission/trust-items.ts"
import type { Place } from "./place.ts"

/** The items of a kind that the person trusted as they were found at the start. */
export function trustedItems({ items, untrusted }: Place, wanted: FoundItem["kind"]): FoundItem[] {
  const changed = new Set(untrusted.map(({ path }) => path))
  return items.filter(({ kind, path }) => kind === wanted && !changed.has(path))
}
