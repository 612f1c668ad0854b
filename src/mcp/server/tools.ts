import {
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ToolAnnotations,
} from "@modelcontextprotocol/server"
import type { Caller } from "../../engine/standalone-calls.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { findListing, type ToolListing } from "../../registry/registry.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { UsageError } from "../../util/errors.ts"
import { canonicalJson } from "../../util/json.ts"
import type { ClientCalls } from "./client-calls.ts"
import { contentOf } from "./content.ts"

/** The tools offered to one client. */
export interface OfferedTools {
  /**
   * Notifies the client if the tools differ from the latest list that the client received. Resolves when the
   * notification has been sent.
   */
  notifyIfChanged(signal: AbortSignal): Promise<void>
  /** Returns true if the client may call the tool. */
  has(name: string, signal: AbortSignal): Promise<boolean>
}

/** Handles `tools/list` and `tools/call`, and notifies the client when its tools change. */
export function offerTools(
  server: Server,
  {
    caller,
    calls,
    onCompleted,
    onProblem,
  }: {
    caller(): Caller
    calls: ClientCalls
    onProblem(message: string, error: unknown): void
    /** Called after each completed call, before the client receives the result. */
    onCompleted(tool: string, state: ToolStateCompleted): Promise<void>
  },
): OfferedTools {
  /** The tools that the client most recently listed or was notified of, as JSON. Undefined before the first list. */
  let sent: string | undefined

  server.setRequestHandler("tools/list", async (_request, { mcpReq }) => {
    const tools = (await caller().tools(mcpReq.signal)).flatMap(toTool)
    sent = canonicalJson(tools)
    return { tools }
  })
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: input = {} } }, context) => {
    const listed = await caller().tools(context.mcpReq.signal)
    await withoutFailing(notifyUnless(listed))
    const tool = offeredTool(name, listed)
    const { state, hint } = await calls.run(context, { tool, input })
    if (state.status === "completed") await withoutFailing(onCompleted(tool, state))
    const result = await contentOf(state)
    if (hint !== undefined) result.content.push({ type: "text", text: hint })
    return result
  })

  /** Reports a failed notification as a problem, so that the client still receives the result. */
  async function withoutFailing(notification: Promise<void>): Promise<void> {
    await notification.catch((error: unknown) => onProblem("a client could not be notified", error))
  }

  async function notifyUnless(listed: readonly ToolListing[]): Promise<void> {
    const now = canonicalJson(listed.flatMap(toTool))
    if (sent === undefined || sent === now) return
    sent = now
    await server.sendToolListChanged()
  }

  return {
    async notifyIfChanged(signal) {
      if (sent !== undefined) await notifyUnless(await caller().tools(signal))
    },
    async has(name, signal) {
      const listed = await caller().tools(signal)
      return findListing(name, listed)?.offered ?? false
    },
  }
}

function toTool({ id, description, parameters, source, offered }: ToolListing): ListToolsResult["tools"] {
  if (!offered) return []
  const annotations = annotationsOf({ id, source })
  return [{ name: id, description, inputSchema: { ...parameters, type: "object" }, annotations }]
}

function offeredTool(name: string, listed: readonly ToolListing[]): string {
  const tool = findListing(name, listed)
  if (tool?.offered) return tool.id
  const why = tool ? `The tool "${name}" is not offered: ${tool.reason}` : `Unknown tool "${name}"`
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${why}. Available: ${availableIDs(listed)}.`)
}

function availableIDs(listed: readonly ToolListing[]): string {
  return listed
    .filter(({ offered }) => offered)
    .map(({ id }) => id)
    .join(", ")
}

/**
 * Checks the flags `--agent` and `--tools` at startup. Throws `UsageError` for an unknown agent, an unknown tool, or a
 * tool that cannot be offered to any client.
 */
export async function assertChosenTools(
  tackle: Tackle,
  { agent, tools, signal }: { agent?: string; tools?: readonly string[]; signal: AbortSignal },
): Promise<void> {
  const caller = tackle.caller({ agent })
  try {
    // If no tools are chosen, upstream MCP servers start when a client first lists the tools.
    if (!tools) return
    const listed = await caller.tools(signal)
    for (const id of tools) {
      const tool = findListing(id, listed)
      // The tool `question` is offered only if a client can show forms.
      if (tool?.offered || id === "question") continue
      if (tool) throw new UsageError(`The tool "${id}" in --tools cannot be offered: ${tool.reason}.`)
      throw new UsageError(`Unknown tool "${id}" in --tools. Available: ${availableIDs(listed)}.`)
    }
  } finally {
    await caller.close()
  }
}

/**
 * Returns the hints that a client uses to decide whether to call a tool without asking, for example while it plans.
 * Only built-in tools have individual hints. Any other tool gets the strictest hints, regardless of what the tool or
 * its MCP server declares.
 */
function annotationsOf({ id, source }: Pick<ToolListing, "id" | "source">): Hints {
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
