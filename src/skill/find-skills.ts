import { join } from "node:path"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"

/** Name of the file that makes a directory a skill. */
const fileName = "SKILL.md"

/** Maximum depth of the search. Skill directories can be inside group directories. */
const maxDepth = 3

/** Returns the `SKILL.md` files below the roots, ordered by root and then by name. Does not search inside a skill. */
export function findSkillFiles(roots: readonly string[]): string[] {
  return roots.flatMap((root) => (isDirectory(root) ? skillsIn(root, maxDepth) : []))
}

/** Returns the paths to watch for new, changed and deleted skills, including missing roots. */
export function skillWatchPaths(roots: readonly string[]): string[] {
  return roots.flatMap((root) => watchPathsIn(root, maxDepth))
}

function watchPathsIn(directory: string, depth: number): string[] {
  if (depth === 0 || !isDirectory(directory)) return [directory]
  const below = subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    // Only `SKILL.md` defines a skill. The model reads other files when it needs them.
    return isFile(file) ? [path, file] : watchPathsIn(path, depth - 1)
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

/** Returns subdirectories, including links to directories. Omits hidden directories and `node_modules`. */
function subdirectories(directory: string): string[] {
  return directoryEntries(directory)
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .sort()
    .map((name) => join(directory, name))
    .filter(isDirectory)
}
