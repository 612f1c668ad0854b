import { basename } from "node:path"
import { fromClaudeServers } from "./claude-servers.ts"
import { parseJsonc } from "./jsonc.ts"
import { claudeServersName } from "./locate.ts"
import type { ObjectNode } from "./node.ts"
import { parseToml } from "./toml.ts"

/** The tree of a config file, in the shape of our own whatever its format. Throws `ConfigError`. */
export async function parseConfig(path: string, text: string): Promise<ObjectNode> {
  if (path.endsWith(".toml")) return parseToml(text, path)
  const tree = await parseJsonc(text, path)
  return basename(path) === claudeServersName ? fromClaudeServers(tree) : tree
}
