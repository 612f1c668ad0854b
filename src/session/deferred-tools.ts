import type { OfferedTool } from "../registry/offered-tool.ts"
import { describeSource } from "../registry/registered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CatalogueEntry } from "../tool/context.ts"
import { toolSearchId } from "../tools/tool-search.ts"
import { isRecord } from "../util/json.ts"

/** Bytes of definitions up to which all are offered: some 80 tools, which several servers of usual size have together. */
export const defaultToolBytes = 64 * 1024

/** The tools of an agent, some of which the model is given only after it looked for them. */
export interface DeferredTools {
  /** Those that are kept back at first, by id. Empty: all tools are offered. */
  deferred: ReadonlyMap<string, OfferedTool>
  /** What `tool_search` looks through. Absent where nothing is kept back. */
  catalogue?: readonly CatalogueEntry[]
  /**
   * What the model is offered at the end of the history: all that is not kept back, then what was found or called, in
   * the order in which that happened. So a prompt cache that holds the tools up to here holds on.
   */
  offered(history: readonly MessageWithParts[]): readonly OfferedTool[]
}

/**
 * Keeps back the tools that are not built in where their definitions come to more than `maxBytes` as they are sent;
 * undefined: never. Nothing is kept back from an agent that may not use `tool_search`, which is left out otherwise.
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
 * Names of tools that were found or called in the history, each once, in the order in which that happened. A call may
 * have named what does not exist.
 */
export function namedTools(history: readonly MessageWithParts[]): string[] {
  const parts = history.flatMap(({ parts }) => parts)
  // What a summary stands for came before everything else, wherever the summary itself stands.
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

/** Another tool that took the name does not know what is kept back. */
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

/** Names of each source that the model is told, for it to see what kind of tools there are. */
const namesShown = 8

/** Tells the model where there are tools to find, and of each place some names. */
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
