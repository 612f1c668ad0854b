import { join } from "node:path"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"

/** An agent or command that a Markdown file defines, derived from its path. */
export interface MarkdownDefinition {
  holds: "agent" | "command"
  /** The name derived from the path. `team/review.md` is the agent `team/review` or the command `team:review`. */
  name: string
  /** The program whose fields it uses. */
  dialect: "tackle" | "opencode" | "claude"
}

/** Folders of a config directory with agents and commands. `.claude` uses the plural names. */
const folders = ["agent", "agents", "command", "commands"] as const

/** Maximum depth below these folders. */
const maxDepth = 5

/** Lists the Markdown files in these folders of a config directory, by folder and name. Absolute paths. */
export function markdownFiles(configDirectory: string): string[] {
  return folders.flatMap((folder) => filesIn(join(configDirectory, folder), maxDepth))
}

/** Lists the paths to watch for changed Markdown files: folders, existing or not, and their contents. */
export function watchedMarkdown(configDirectory: string): string[] {
  return folders.flatMap((folder) => watchedIn(join(configDirectory, folder), maxDepth))
}

/**
 * Returns undefined for a path that {@link markdownFiles} does not return. If a path contains several such folders, the
 * outermost one counts that {@link markdownFiles} reaches; it does not enter hidden directories.
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

/** Returns whether the name is usable in rules, in commands and as a path: no spaces, wildcards or `..`. */
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
