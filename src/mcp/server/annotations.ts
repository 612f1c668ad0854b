import type { ToolAnnotations } from "@modelcontextprotocol/server"
import type { ToolListing } from "../../registry/registry.ts"

/**
 * Returns the hints that a client uses to decide whether to call a tool without asking, for example while it plans.
 * Only built-in tools have hints of their own. Any other tool gets the strictest hints, regardless of what the tool or
 * its MCP server declares.
 */
export function annotationsOf({ id, source }: Pick<ToolListing, "id" | "source">): Hints {
  return (source === "builtin" ? builtin.get(id) : undefined) ?? strictest
}

type Hints = Required<Omit<ToolAnnotations, "title">>

const strictest: Hints = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}
const reads: Hints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}
const readsWeb: Hints = { ...reads, openWorldHint: true }
const edits: Hints = { ...strictest, openWorldHint: false }

/** Hints by tool id. A tool without an entry, such as `bash`, gets the strictest hints. */
const builtin: ReadonlyMap<string, Hints> = new Map(
  Object.entries({
    read: reads,
    glob: reads,
    grep: reads,
    list: reads,
    skill: reads,
    todoread: reads,
    question: { ...reads, idempotentHint: false },
    webfetch: readsWeb,
    websearch: readsWeb,
    codesearch: readsWeb,
    // `todowrite` changes only the client's to-do list, which is not part of the project.
    todowrite: { ...reads, readOnlyHint: false },
    write: { ...edits, idempotentHint: true },
    edit: edits,
    apply_patch: edits,
  }),
)
