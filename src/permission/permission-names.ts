import { nearNames } from "../util/similarity.ts"

/** Permissions that Tackle itself requests. */
export const knownPermissions: readonly string[] = (
  "bash batch codesearch doom_loop edit external_directory glob grep invalid job list lsp mcp_sampling network plan_enter " +
  "plan_exit private_network question read sandbox_escape skill task todo tool_search webfetch websearch"
).split(" ")

/** Returns the closest permission with at most one edit per four letters, rounded up, or with two swapped letters. */
export function nearestPermission(name: string): string | undefined {
  const letters = (text: string) => [...text.toLowerCase()].sort().join("")
  const swapped = nearNames(name, knownPermissions, 2).find((known) => letters(known) === letters(name))
  return nearNames(name, knownPermissions, Math.ceil(name.length / 4))[0] ?? swapped
}
