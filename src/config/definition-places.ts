import { join } from "node:path"
import { ownConfigDirectories } from "./config-directories.ts"
import { type Location, projectLevels } from "./location.ts"
import { markdownPlaces } from "./markdown-place.ts"
import { skillPlaces } from "./skill-files.ts"

/**
 * What to look at for an agent, command or skill that came, went or changed. Absolute paths, there or not: some dozens,
 * and what lies in those folders.
 */
export function definitionPlaces(location: Location): string[] {
  const directories = [
    join(location.home, ".claude"),
    ...ownConfigDirectories(location),
    ...projectLevels(location).flatMap((level) =>
      [".claude", ".opencode", ".tackle"].map((name) => join(level, name)),
    ),
  ]
  return [...directories.flatMap(markdownPlaces), ...skillPlaces(location)]
}
