import { join } from "node:path"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"

/** What a Markdown file of a config directory defines, as its path tells it. */
export interface MarkdownDefinition {
  holds: "agent" | "command"
  /** The name by its path: `review`, and for `team/review.md` `team/review` of an agent, `team:review` of a command. */
  name: string
  /** Whose fields it has. */
  dialect: "tackle" | "opencode" | "claude"
}

/** The folders of a config directory that hold agents and commands. `.claude` has those with an s. */
const folders = ["agent", "agents", "command", "commands"] as const

/** Folders within these are looked into so deep. */
const maxDepth = 5

/** The Markdown files in the folders of a config directory, in their order and by name. Absolute paths. */
export function markdownFiles(configDirectory: string): string[] {
  return folders.flatMap((folder) => filesIn(join(configDirectory, folder), maxDepth))
}

/** What to look at for a file of these that came, went or changed: folders, there or not, and all that is in them. */
export function watchedMarkdown(configDirectory: string): string[] {
  return folders.flatMap((folder) => watchedIn(join(configDirectory, folder), maxDepth))
}

/**
 * Undefined for a path that is none of {@link markdownFiles}. Where a path passes through several such folders the
 * outermost counts from which {@link markdownFiles} leads there: it looks into no hidden directory.
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

/** A name is a pattern of rules, the word after a slash and a path: it holds no blanks, no wildcards and no `..`. */
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
  // To list what is not there takes longer than to ask for it.
  const below = (isDirectory(directory) ? directoryEntries(directory) : []).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.name.startsWith(".")) return []
    if (!entry.isDirectory()) return entry.name.endsWith(".md") ? [path] : []
    return depth > 1 ? watchedIn(path, depth - 1) : []
  })
  return [directory, ...below]
}
