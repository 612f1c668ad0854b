import { basename } from "node:path"
import { fromClaudeServers } from "./claude.ts"
import { claudeServersName } from "./config-files.ts"
import { ConfigError, type Problem } from "./errors.ts"
import { parseJsonc } from "./jsonc.ts"
import { markdownDefinition } from "./markdown-files.ts"
import type { ObjectNode } from "./node.ts"
import { parseToml } from "./toml.ts"

/**
 * The tree of a config file, in the shape of our own whatever its format, and what was left out of it. Throws
 * `ConfigError`.
 */
export async function parseConfig(
  path: string,
  text: string,
): Promise<{ tree: ObjectNode; notes: Problem[] }> {
  if (path.endsWith(".toml")) return { tree: await parseToml(text, path), notes: [] }
  if (markdownDefinition(path)) {
    // Brings the YAML parser, which takes longer than all else at a start: only where there is such a file.
    const { parseMarkdown } = await import("./markdown.ts")
    const parsed = parseMarkdown(path, text)
    if (parsed) return parsed
  }
  const tree = await parseJsonc(text, path)
  return { tree: basename(path) === claudeServersName ? fromClaudeServers(tree) : tree, notes: [] }
}

/** The tree alone. Undefined for a text that cannot be parsed: whoever loads the file says what is wrong with it. */
export async function treeOf(path: string, text: string): Promise<ObjectNode | undefined> {
  try {
    return (await parseConfig(path, text)).tree
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}
