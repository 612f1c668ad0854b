import { dirname, join } from "node:path"
import { isFile } from "../util/file-system.ts"
import { isInside } from "../util/paths.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"

/**
 * The texts that count without being named: of the person, then of each directory from the work tree's root down. Of one
 * directory only the first of `AGENTS.md` and its kin counts. Absolute paths, the nearest last.
 */
export function instructionFiles(location: Location): string[] {
  const files = [
    ...ownInstructionPlaces(location).flatMap((place) => firstFile(place, ["AGENTS.md", "CLAUDE.md"])),
    ...projectLevels(location).flatMap((level) => firstFile(level, instructionNames)),
  ]
  return [...new Set(files)]
}

/**
 * Finds the same for a file of the project that lies deeper or elsewhere: of each directory from the work tree's root
 * down to it, without those whose texts count anyway and the file itself. Links in the path are not followed. Asked at
 * each read: the file system is not looked at for a file that lies no deeper than the directory.
 */
export function instructionFinder(location: Location): (file: string) => string[] {
  const counted = new Set([...projectLevels(location), ...ownInstructionPlaces(location)])
  return (file) => {
    if (!isInside(file, location.worktree)) return []
    return projectLevels({ ...location, directory: dirname(file) })
      .filter((level) => !counted.has(level))
      .flatMap((level) => firstFile(level, instructionNames))
      .filter((path) => path !== file)
  }
}

/** Where a person keeps the texts that hold for all their projects. */
function ownInstructionPlaces(location: Location): string[] {
  const user = userDirectory(location)
  return [
    join(location.home, ".claude"),
    join(location.home, ".agents"),
    join(user, "opencode"),
    join(user, "tackle"),
  ]
}

/** The first that is there is what a directory of the project says. */
const instructionNames = [
  "AGENTS.md",
  ".tackle/AGENTS.md",
  ".agents/AGENTS.md",
  "CLAUDE.md",
  ".claude/CLAUDE.md",
]

function firstFile(directory: string, names: readonly string[]): string[] {
  const found = names.map((name) => join(directory, name)).find(isFile)
  return found === undefined ? [] : [found]
}
