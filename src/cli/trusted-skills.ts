import { skillFiles } from "../config/skill-files.ts"
import type { FoundItem } from "../permission/trust-items.ts"
import type { SkillFile } from "../skill/load-skills.ts"
import { isInside } from "../util/paths.ts"
import type { Place } from "./place.ts"
import { trustedItems } from "./trusted-items.ts"

/**
 * Skills of the person, and those of the project whose text is the trusted one, in rising precedence. `trusted`: those
 * skills of the project; by default the ones that were found at the start.
 */
export function trustedSkillFiles(
  place: Place,
  trusted: readonly FoundItem[] = trustedItems(place, "skill"),
): SkillFile[] {
  const contentsOf = new Map(trusted.map(({ file, contents }) => [file, contents]))
  return skillFiles(place).flatMap((path) => {
    if (!isInside(path, place.worktree)) return [{ path }]
    const pinned = contentsOf.get(path)
    return pinned ? [{ path, pinned }] : []
  })
}
