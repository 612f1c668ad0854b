import type { OfferedTool } from "../registry/offered-tool.ts"
import { describeSource } from "../registry/registered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CatalogueEntry } from "../tool/context.ts"
import { toolSearchId } from "../tools/tool-search.ts"
import { isRecord } from "../util/json.ts"

/**
 * Default maximum for the total size, in bytes, of the third-party tool definitions that are offered without a search.
 * This is enough for about 80 tools, or several typical MCP servers.
 */
export const defaultToolBytes = 64 * 1024

/** An agent's tools, some of which may be offered only after the model searches for them. */
export interface DeferredTools {
  /** Tools that are not offered at first, by id. Empty if all tools are offered. */
  deferred: ReadonlyMap<string, OfferedTool>
  /** Search index for `tool_search`. Undefined when no tool is deferred. */
  catalogue?: readonly CatalogueEntry[]
  /**
   * Returns the tools to offer to the model for the next step. Tools that are not deferred come first. They are
   * followed by the deferred tools that the model has found or called, in order of first use, so that prompt caches
   * stay valid.
   */
  offered(history: readonly MessageWithParts[]): readonly OfferedTool[]
}

/**
 * Defers third-party tools if their definitions, in the form sent to the model, exceed `maxBytes`. Without `maxBytes`
 * or without permission for `tool_search`, no tool is deferred. `tool_search` itself is offered only if tools are
 * deferred.
 */
export function deferTools(tools: readonly OfferedTool[], maxBytes: number | undefined): DeferredTools {
  const search = tools.find(isToolSearch)
  const others = tools.filter((tool) => tool !== search)
  const further = others.filter(({ source }) => source.kind !== "builtin")
  if (!search || maxBytes === undefined || bytesOf(further) <= maxBytes)
    return { deferred: new Map(), offered: () => others }

  const deferred = new Map(further.map((tool) => [tool.id, tool]))
  const atFirst = tools.flatMap((tool) => {
    if (deferred.has(tool.id)) return []
    return tool === search ? [tellingOf(tool, further)] : [tool]
  })
  return {
    deferred,
    catalogue: further.map(entryOf),
    offered: (history) => [...atFirst, ...namedTools(history).flatMap((id) => deferred.get(id) ?? [])],
  }
}

/**
 * Returns the unique names of the tools that were found or called in the history, in order of first use. The list may
 * contain names of tools that do not exist, because a model can call any name.
 */
export function namedTools(history: readonly MessageWithParts[]): string[] {
  const parts = history.flatMap(({ parts }) => parts)
  // A summary represents the oldest messages, regardless of its position in the history.
  const before = parts.findLast((part) => part.type === "compaction")?.tools ?? []
  const since = parts.flatMap((part) => {
    if (part.type !== "tool") return []
    const { state, tool } = part
    return tool === toolSearchId && state.status === "completed" ? foundIn(state.metadata) : [tool]
  })
  return [...new Set([...before, ...since])]
}

function foundIn(metadata: unknown): string[] {
  const found = isRecord(metadata) && Array.isArray(metadata.found) ? metadata.found : []
  return found.filter((id) => typeof id === "string")
}

/**
 * Returns true only for the built-in tool. A tool with the same name from another source cannot search the deferred
 * tools.
 */
function isToolSearch({ id, source }: OfferedTool): boolean {
  return id === toolSearchId && source.kind === "builtin"
}

function bytesOf(tools: readonly OfferedTool[]): number {
  const definitions = tools.map(({ id, definition, schema }) => [id, definition.description, schema])
  return Buffer.byteLength(JSON.stringify(definitions))
}

function entryOf({ id, definition, schema }: OfferedTool): CatalogueEntry {
  const { properties } = schema
  return {
    id,
    description: definition.description,
    parameters: isRecord(properties) ? Object.keys(properties) : [],
  }
}

/** Number of tool names shown per source. */
const namesShown = 8

/**
 * Adds the sources of the deferred tools to the description of `tool_search`, with some tool names from each source.
 */
function tellingOf(search: OfferedTool, further: readonly OfferedTool[]): OfferedTool {
  const bySource = Map.groupBy(further, ({ source }) =>
    source.kind === "mcp" || source.kind === "plugin" ? describeSource(source) : "others",
  )
  const lines = [...bySource].map(([source, tools]) => {
    const names = tools.slice(0, namesShown).map(({ id }) => id)
    const more = tools.length > names.length ? ", …" : ""
    return `- ${source} (${tools.length}): ${names.join(", ")}${more}`
  })
  const description = [search.definition.description.trimEnd(), "These tools can be found:", ...lines].join(
    "\n",
  )
  return { ...search, definition: { ...search.definition, description } }
}
