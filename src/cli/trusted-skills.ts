import { skillFiles } from "../config/skill-files.ts"
import type { SkillFile } from "../skill/load-skills.ts"
import { isInside } from "../util/paths.ts"
import type { Place } from "./place.ts"
import { trustedItems } from "./trusted-items.ts"

/** Skills of the person, and those of the project whose text is the trusted one, in rising precedence. */
export function trustedSkillFiles(place: Place): SkillFile[] {
  const trusted = new Map(trustedItems(place, "skill").map(({ file, contents }) => [file, contents]))
  return skillFiles(place).flatMap((path) => {
    if (!isInside(path, place.worktree)) return [{ path }]
    const pinned = trusted.get(path)
    return pinned ? [{ path, pinned }] : []
  })
}
