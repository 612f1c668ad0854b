import { type Dirent, readdirSync, statSync } from "node:fs"
import { join } from "node:path"

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
  return list(directory)
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .sort()
    .map((name) => join(directory, name))
    .filter(isDirectory)
}

/** Empty for what cannot be read: nothing can be loaded from there either. */
function list(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

function isDirectory(path: string): boolean {
  return stat(path)?.isDirectory() === true
}

function isFile(path: string): boolean {
  return stat(path)?.isFile() === true
}

function stat(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    // Such as a loop of links, or a directory on the way that may not be entered.
    return undefined
  }
}
