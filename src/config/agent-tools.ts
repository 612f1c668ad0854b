import { entryOf, filterEntries, type ObjectNode } from "./node.ts"

/**
 * The tree of a project's file, in which no agent gets a tool back that the person's own files may have taken from it:
 * where those list tools of an agent, the project's `true` for one does not count.
 */
export function withoutToolsGivenBack(project: ObjectNode, own: readonly ObjectNode[]): ObjectNode {
  return mapObject(project, "agent", (agents) =>
    filterEntries(agents, (agent) => {
      const isListed = own.some((tree) => toolsOf(tree, agent.key))
      if (!isListed || agent.value.kind !== "object") return agent
      const value = mapObject(agent.value, "tools", (tools) =>
        filterEntries(tools, (tool) =>
          tool.value.kind === "scalar" && tool.value.value === true ? undefined : tool,
        ),
      )
      return { ...agent, value }
    }),
  )
}

function toolsOf(tree: ObjectNode, name: string) {
  return entryOf(entryOf(entryOf(tree, "agent")?.value, name)?.value, "tools")
}

/** The object with the object under the key replaced. */
function mapObject(node: ObjectNode, key: string, change: (value: ObjectNode) => ObjectNode): ObjectNode {
  return filterEntries(node, (entry) =>
    entry.key === key && entry.value.kind === "object" ? { ...entry, value: change(entry.value) } : entry,
  )
}
