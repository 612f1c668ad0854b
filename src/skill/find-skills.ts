import { join } from "node:path"
import { entriesOf, isDirectory, isFile } from "../util/directory-entries.ts"

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

function skillsIn(directory: string, depth: number): string[] {
  if (depth === 0) return []
  return subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    return isFile(file) ? [file] : skillsIn(path, depth - 1)
  })
}

/** Links count as what they lead to. */
function subdirectories(directory: string): string[] {
  return entriesOf(directory)
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .sort()
    .map((name) => join(directory, name))
    .filter(isDirectory)
}
