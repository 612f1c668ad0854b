import { join } from "node:path"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"

/** The file that makes a directory a skill. */
const fileName = "SKILL.md"

/** Skills lie in a directory of their own, or in a group of such; deeper nothing is looked for. */
const maxDepth = 3

/**
 * Paths of the `SKILL.md` files below the places, in their order and by name. A place that is not there costs one look.
 * Below a skill no other is looked for.
 */
export function findSkillFiles(places: readonly string[]): string[] {
  return places.flatMap((place) => (isDirectory(place) ? skillsIn(place, maxDepth) : []))
}

/** What to look at for a skill that came, went or changed: the places, there or not, and what lies in them. */
export function skillLookouts(places: readonly string[]): string[] {
  return places.flatMap((place) => lookoutsIn(place, maxDepth))
}

function lookoutsIn(directory: string, depth: number): string[] {
  if (depth === 0 || !isDirectory(directory)) return [directory]
  const below = subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    // A skill is known by its text alone: what lies beside it is read when the model wants it.
    return isFile(file) ? [path, file] : lookoutsIn(path, depth - 1)
  })
  return [directory, ...below]
}

function skillsIn(directory: string, depth: number): string[] {
  if (depth === 0) return []
  return subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    return isFile(file) ? [file] : skillsIn(path, depth - 1)
  })
}

/** Links count as what they lead to. */
function subdirectories(directory: string): string[] {
  return directoryEntries(directory)
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .sort()
    .map((name) => join(directory, name))
    .filter(isDirectory)
}
