import { basename, dirname, join, resolve } from "node:path"
import { isFile } from "../util/file-system.ts"
import { isInside, realPath } from "../util/paths.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"
import { filterEntries, type ObjectNode } from "./node.ts"

/**
 * The texts that count without being named: of the person, then of each directory from the work tree's root down. Of one
 * directory only the first of `AGENTS.md` and its kin counts. Absolute paths, the nearest last.
 */
export function instructionFiles(location: Location): string[] {
  const files = [
    ...ownInstructionFolders(location).flatMap((position) => firstFile(position, ["AGENTS.md", "CLAUDE.md"])),
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
  const counted = new Set([...projectLevels(location), ...ownInstructionFolders(location)])
  return (file) => {
    if (!isInside(file, location.worktree)) return []
    return projectLevels({ ...location, directory: dirname(file) })
      .filter((level) => !counted.has(level))
      .flatMap((level) => firstFile(level, instructionNames))
      .filter((path) => path !== file)
  }
}

/** Where a person keeps the texts that hold for all their projects. */
function ownInstructionFolders(location: Location): string[] {
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

/** Makes the relative paths in `instructions` absolute, so that it no longer matters in which file they stood. */
export function resolveInstructions(
  tree: ObjectNode,
  start: { directory: string; home: string },
): ObjectNode {
  return mapInstructions(tree, (text) => {
    if (isAddress(text)) return text
    return text.startsWith("~/") ? join(start.home, text.slice(2)) : resolve(start.directory, text)
  })
}

/** Where the relative paths of a config file start: beside it, and beside the dot directory that holds it. */
export function instructionsDirectory(file: string): string {
  const directory = dirname(file)
  return [".tackle", ".opencode"].includes(basename(directory)) ? dirname(directory) : directory
}

/**
 * Keeps only what a project that is not trusted may say: Markdown and text files that lie in its work tree once links
 * are followed. Anything else could send the person's own files, or a page of the net, to the model.
 */
export function keepOwnInstructions(
  tree: ObjectNode,
  project: { worktree: string; directory: string },
): { tree: ObjectNode; dropped: boolean } {
  let dropped = false
  const kept = mapInstructions(tree, (text) => {
    if (isOwnText(text, project)) return text
    dropped = true
    return undefined
  })
  return { tree: kept, dropped }
}

function isOwnText(text: string, { worktree, directory }: { worktree: string; directory: string }): boolean {
  // Braces hold substitutions, or alternatives of a pattern that may climb.
  if (isAddress(text) || /^~|\{|\.\./.test(text) || !/\.(md|mdc|markdown|txt)$/i.test(text)) return false
  const path = resolve(directory, text)
  // Of a pattern: the directory in which its first wildcard stands.
  const [beginning = path, ...wild] = path.split(/[*?[(!]/)
  try {
    const fixed = realPath(wild.length > 0 ? dirname(`${beginning}x`) : path)
    return isInside(path, worktree) && isInside(fixed, realPath(worktree))
  } catch {
    // A loop of links, or a directory without rights: nothing to read either.
    return false
  }
}

function isAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
}

function mapInstructions(tree: ObjectNode, change: (text: string) => string | undefined): ObjectNode {
  return filterEntries(tree, (entry) => {
    if (entry.key !== "instructions" || entry.value.kind !== "array") return entry
    const items = entry.value.items.flatMap((item) => {
      if (item.kind !== "scalar" || typeof item.value !== "string") return [item]
      const value = change(item.value)
      return value === undefined ? [] : [{ ...item, value }]
    })
    return { ...entry, value: { ...entry.value, items } }
  })
}
