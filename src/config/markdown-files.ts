import { join } from "node:path"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"

/** The agent or command that a Markdown file defines, according to its path. */
export interface MarkdownDefinition {
  holds: "agent" | "command"
  /** The name derived from the path. `team/review.md` is the agent `team/review` or the command `team:review`. */
  name: string
  /** The program whose field names the file uses. */
  dialect: "tackle" | "opencode" | "claude"
}

/** Subdirectories of a config directory that contain agents and commands. `.claude` uses the plural names. */
const folders = ["agent", "agents", "command", "commands"] as const

/** Maximum depth of files below these directories. */
const maxDepth = 5

/**
 * Lists the Markdown agents and commands in a config directory, sorted by subdirectory and name. Returns absolute
 * paths.
 */
export function markdownFiles(configDirectory: string): string[] {
  return folders.flatMap((folder) => filesIn(join(configDirectory, folder), maxDepth))
}

/**
 * Lists the paths to watch for changed Markdown files: the subdirectories, whether or not they exist, and their
 * contents.
 */
export function watchedMarkdown(configDirectory: string): string[] {
  return folders.flatMap((folder) => watchedIn(join(configDirectory, folder), maxDepth))
}

/**
 * Derives an agent or command from a path. Returns undefined for a path that {@link markdownFiles} does not return. If
 * a path contains several agent or command directories, the outermost directory that {@link markdownFiles} searches
 * applies. Hidden directories are not searched.
 */
export function markdownDefinition(path: string): MarkdownDefinition | undefined {
  const [, directory = "", folder = "", inside = ""] = pattern.exec(path) ?? []
  if (inside === "") return undefined
  const holds = folder.startsWith("agent") ? "agent" : "command"
  const steps = inside.split("/")
  return {
    holds,
    name: steps.join(holds === "agent" ? "/" : ":"),
    dialect: directory === "claude" ? "claude" : directory === "opencode" ? "opencode" : "tackle",
  }
}

/**
 * Returns true if the name can be used in rules, in commands and as a path. A valid name has at most 128 characters.
 * Its parts, separated by `/` or `:`, start with a letter or digit and contain only letters, digits, `.`, `_` and `-`.
 */
export function isMarkdownName(name: string): boolean {
  return name.length <= 128 && /^[A-Za-z0-9][\w.-]*(?:[/:][A-Za-z0-9][\w.-]*)*$/.test(name)
}

const pattern =
  /^.*?\/\.?(tackle|opencode|claude)\/(agents?|commands?)\/((?:[^/.][^/]*\/){0,4}[^/.][^/]*)\.md$/

function filesIn(directory: string, depth: number): string[] {
  if (depth === 0) return []
  return directoryEntries(directory).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.name.startsWith(".")) return []
    if (entry.isDirectory()) return filesIn(path, depth - 1)
    return entry.name.endsWith(".md") && isFile(path) ? [path] : []
  })
}

function watchedIn(directory: string, depth: number): string[] {
  // Listing a missing directory takes longer than checking for it.
  const below = (isDirectory(directory) ? directoryEntries(directory) : []).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.name.startsWith(".")) return []
    if (!entry.isDirectory()) return entry.name.endsWith(".md") ? [path] : []
    return depth > 1 ? watchedIn(path, depth - 1) : []
  })
  return [directory, ...below]
}
