import { type ConfigEntry, type ConfigNode, entryOf, type ObjectNode } from "./node.ts"

/**
 * `.mcp.json` in the shape of Claude Code, `{"mcpServers": {…}}`, as a config with `mcp` and nothing else. `${NAME}`
 * becomes `{env:NAME}`. What has another shape is left for the check to refuse.
 */
export function fromClaudeServers(tree: ObjectNode): ObjectNode {
  const servers = entryOf(tree, "mcpServers")
  if (!servers) return { ...tree, entries: [] }
  const value =
    servers.value.kind === "object"
      ? {
          ...servers.value,
          entries: servers.value.entries.map((entry) => ({ ...entry, value: serverOf(entry.value) })),
        }
      : servers.value
  return { ...tree, entries: [{ ...servers, key: "mcp", value }] }
}

function serverOf(given: ConfigNode): ConfigNode {
  const server = withVariables(given)
  if (server.kind !== "object") return server
  const { entries, place } = server
  const named = (key: string) => entries.filter((entry) => entry.key === key)
  const text = (key: string, value: string): ConfigEntry => ({
    key,
    place,
    value: { kind: "scalar", place, value },
  })
  const [url] = named("url")
  if (url) return { ...server, entries: [text("type", "remote"), url, ...named("headers")] }
  const environment = named("env").map((entry) => ({ ...entry, key: "environment" }))
  return { ...server, entries: [text("type", "local"), ...commandOf(server), ...environment] }
}

/** Program and arguments in one list. */
function commandOf(server: ObjectNode): ConfigEntry[] {
  const [command, args] = [entryOf(server, "command"), entryOf(server, "args")]
  if (!command) return []
  const rest = args?.value.kind === "array" ? args.value.items : []
  const value = { kind: "array", place: command.value.place, items: [command.value, ...rest] } as const
  return [{ ...command, value }]
}

function withVariables(node: ConfigNode): ConfigNode {
  switch (node.kind) {
    case "array":
      return { ...node, items: node.items.map(withVariables) }
    case "object":
      return {
        ...node,
        entries: node.entries.map((entry) => ({ ...entry, value: withVariables(entry.value) })),
      }
    default:
      return typeof node.value === "string"
        ? { ...node, value: node.value.replaceAll(/\$\{(\w+)\}/g, "{env:$1}") }
        : node
  }
}
