import { basename } from "node:path"
import { fromClaudeServers } from "./claude.ts"
import { claudeServersName } from "./config-files.ts"
import { ConfigError, type Problem } from "./errors.ts"
import { parseJsonc } from "./jsonc.ts"
import { markdownDefinition } from "./markdown-files.ts"
import type { ObjectNode } from "./node.ts"
import { fromOpencode, isOpencodeConfig } from "./opencode.ts"
import { parseToml } from "./toml.ts"

/**
 * Parses a config file in any format into a tree of Tackle's own shape, with notes about fields and values that Tackle
 * does not use. Throws `ConfigError` if the text cannot be parsed.
 */
export async function parseConfig(
  path: string,
  text: string,
): Promise<{ tree: ObjectNode; notes: Problem[] }> {
  if (markdownDefinition(path)) {
    // Loading the YAML parser takes longer than any other step of startup, so it is loaded only if needed.
    const { parseMarkdown } = await import("./markdown.ts")
    const parsed = parseMarkdown(path, text)
    if (parsed) return parsed
  }
  const tree = path.endsWith(".toml") ? await parseToml(text, path) : await parseJsonc(text, path)
  if (isOpencodeConfig(path)) return { tree: fromOpencode(tree), notes: [] }
  return { tree: basename(path) === claudeServersName ? fromClaudeServers(tree) : tree, notes: [] }
}

/**
 * Returns a config file's tree, without notes, or undefined if the text cannot be parsed. The problem is reported when
 * the config is loaded.
 */
export async function treeOf(path: string, text: string): Promise<ObjectNode | undefined> {
  try {
    return (await parseConfig(path, text)).tree
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}
