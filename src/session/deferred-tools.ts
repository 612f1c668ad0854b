import type { OfferedTool } from "../registry/offered-tool.ts"
import { describeSource } from "../registry/registered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CatalogueEntry } from "../tool/context.ts"
import { toolSearchId } from "../tools/tool-search.ts"
import { isRecord } from "../util/json.ts"

/**
 * Size of definitions up to which all tools are offered: about 80 tools, as several typical servers have together.
 */
export const defaultToolBytes = 64 * 1024

/** The tools of an agent. Some are offered to the model only after it searches for them. */
export interface DeferredTools {
  /** Tools that are not offered at first, by id. Empty: all tools are offered. */
  deferred: ReadonlyMap<string, OfferedTool>
  /** Search index for `tool_search`. Undefined when no tool is deferred. */
  catalogue?: readonly CatalogueEntry[]
  /**
   * Returns the tools that the model is offered at the end of the history: all tools that are not deferred, then
   * those that were found or called, in that order. The order keeps prompt caches valid.
   */
  offered(history: readonly MessageWithParts[]): readonly OfferedTool[]
}

/**
 * Defers third-party tools if their definitions have more than `maxBytes` as sent. Undefined: never. Without
 * permission for `tool_search` nothing is deferred, and `tool_search` itself is offered only when it is needed.
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
 * Returns the names of tools that were found or called in the history, each once, in that order. A called tool may not
 * exist.
 */
export function namedTools(history: readonly MessageWithParts[]): string[] {
  const parts = history.flatMap(({ parts }) => parts)
  // A summary stands for the oldest messages, wherever it is in the history.
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

/** A tool of another source with this name does not know the deferred tools. */
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

/** Adds the sources of deferred tools to the description, with some names of each. */
function tellingOf(search: OfferedTool, further: readonly OfferedTool[]): OfferedTool {
  const bySource = Map.groupBy(further, ({ source }) =>
    source.kind === "mcp" || source.kind === "plugin" ? describeSource(source) : "others",
  )
  const lines = [...bySource].map(([source, tools]) => {
    const names = tools.slice(0, namesShown).map(({ id }) => id)
    const more = tools.length > names.length ? ", …" : ""
    return `- ${source} (${tools.length}): ${names.join(", ")}${more}`
  })
  const description = [search.definition.description.trimEnd(), "There are:", ...lines].join("\n")
  return { ...search, definition: { ...search.definition, description } }
}
