import { basename, dirname, join, resolve } from "node:path"
import { isFile } from "../util/file-system.ts"
import { isInside, realPath } from "../util/paths.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"
import { filterEntries, type ObjectNode } from "./node.ts"

/**
 * Lists the instruction files that are used even if no config lists them: the user's files, then the files of each
 * directory from the worktree root down to the working directory. Returns absolute paths, nearest last.
 */
export function instructionFiles(location: Location): string[] {
  const files = [
    ...ownInstructionFolders(location).flatMap((position) => firstFile(position, ["AGENTS.md", "CLAUDE.md"])),
    ...projectLevels(location).flatMap(filesIn),
  ]
  return [...new Set(files)]
}

/**
 * Returns a function that finds the instruction files for a file in a subdirectory of the project, from the worktree
 * root down. Excludes the file itself and the instruction files that are always used. Does not resolve links in the
 * path. The function runs at each read, so it does not access the file system for files in the working directory or its
 * parents.
 */
export function instructionFinder(location: Location): (file: string) => string[] {
  const counted = new Set([...projectLevels(location), ...ownInstructionFolders(location)])
  return (file) => {
    if (!isInside(file, location.worktree)) return []
    return projectLevels({ ...location, directory: dirname(file) })
      .filter((level) => !counted.has(level))
      .flatMap(filesIn)
      .filter((path) => path !== file)
  }
}

/** Returns the directories with the user's instructions for all projects. */
function ownInstructionFolders(location: Location): string[] {
  const user = userDirectory(location)
  return [
    join(location.home, ".claude"),
    join(location.home, ".agents"),
    join(user, "opencode"),
    join(user, "tackle"),
  ]
}

/**
 * Names of instruction files. Tackle uses only the first of these files that exists in a directory, in addition to
 * {@link privateName}.
 */
const instructionNames = [
  "AGENTS.md",
  ".tackle/AGENTS.md",
  ".agents/AGENTS.md",
  "CLAUDE.md",
  ".claude/CLAUDE.md",
]

/**
 * Claude Code's file with a user's private instructions for a project. Tackle uses it after the shared file in the same
 * directory.
 */
const privateName = "CLAUDE.local.md"

function filesIn(level: string): string[] {
  return [...firstFile(level, instructionNames), ...firstFile(level, [privateName])]
}

function firstFile(directory: string, names: readonly string[]): string[] {
  const found = names.map((name) => join(directory, name)).find(isFile)
  return found === undefined ? [] : [found]
}

/** Makes the paths in `instructions` absolute, including those that start with `~/`. Does not change URLs. */
export function resolveInstructions(
  tree: ObjectNode,
  start: { directory: string; home: string },
): ObjectNode {
  return mapInstructions(tree, (text) => {
    if (isAddress(text)) return text
    return text.startsWith("~/") ? join(start.home, text.slice(2)) : resolve(start.directory, text)
  })
}

/**
 * Returns the directory that relative paths in a config file's `instructions` refer to: the file's directory, or the
 * parent of `.tackle` or `.opencode`.
 */
export function instructionsDirectory(file: string): string {
  const directory = dirname(file)
  return [".tackle", ".opencode"].includes(basename(directory)) ? dirname(directory) : directory
}

/**
 * Removes the instructions that an untrusted project may not list, because they could send the user's files to the
 * model. Keeps only Markdown and text files inside the project's worktree. Resolves the links in a path, or in the part
 * of a pattern before its first wildcard.
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
  // Rejects braces, because they are substitutions or alternatives that could contain `..`.
  if (isAddress(text) || /^~|\{|\.\./.test(text) || !/\.(md|mdc|markdown|txt)$/i.test(text)) return false
  const path = resolve(directory, text)
  // For a pattern, checks the directory before the first wildcard.
  const [beginning = path, ...wild] = path.split(/[*?[(!]/)
  try {
    const fixed = realPath(wild.length > 0 ? dirname(`${beginning}x`) : path)
    return isInside(path, worktree) && isInside(fixed, realPath(worktree))
  } catch {
    // The links form a loop, or the directory is unreadable, so there is nothing to read.
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
