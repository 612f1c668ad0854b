import {
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
} from "@modelcontextprotocol/server"
import type { Caller } from "../../engine/caller.ts"
import type { ToolListing } from "../../registry/registry.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { canonicalJson } from "../../util/json.ts"
import type { ClientCalls } from "./client-calls.ts"
import { nobodyToAsk } from "./completed-call.ts"
import { contentOf } from "./content.ts"

/** The tools as one client sees them. */
export interface OfferedTools {
  /** Tells the client where it was told of others than there are now. Resolves when it knows. */
  compare(signal: AbortSignal): Promise<void>
  /** True for a tool that the client may call. */
  has(name: string, signal: AbortSignal): Promise<boolean>
}

/** Answers `tools/list` and `tools/call`, and tells the client when what it was told of has changed. */
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
    /** Hears of every call that came to its end, before the client does. */
    onCompleted(tool: string, state: ToolStateCompleted): Promise<void>
  },
): OfferedTools {
  /** What the client was last told, or told that it is others now. Undefined: nothing yet. */
  let told: string | undefined

  server.setRequestHandler("tools/list", async (_request, { mcpReq }) => {
    const tools = (await caller().tools(mcpReq.signal)).flatMap(toTool)
    told = canonicalJson(tools)
    return { tools }
  })
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: input = {} } }, context) => {
    const listed = await caller().tools(context.mcpReq.signal)
    await telling(compareWith(listed))
    assertOffered(name, listed)
    const { state, unasked } = await calls.run(context, { tool: name, input })
    if (state.status === "completed") await telling(onCompleted(name, state))
    const result = await contentOf(state)
    if (unasked) result.content.push({ type: "text", text: nobodyToAsk })
    return result
  })

  /** What a call came to must reach the client, whether that hears the rest or not. */
  async function telling(notice: Promise<void>): Promise<void> {
    await notice.catch((error: unknown) =>
      onProblem("a client could not be told of what there is now", error),
    )
  }

  async function compareWith(listed: readonly ToolListing[]): Promise<void> {
    const now = canonicalJson(listed.flatMap(toTool))
    if (told === undefined || told === now) return
    told = now
    await server.sendToolListChanged()
  }

  return {
    async compare(signal) {
      if (told !== undefined) await compareWith(await caller().tools(signal))
    },
    async has(name, signal) {
      const listed = await caller().tools(signal)
      return listed.some(({ id, offered }) => id === name && offered)
    },
  }
}

function toTool({ id, description, parameters, offered }: ToolListing): ListToolsResult["tools"] {
  if (!offered) return []
  return [{ name: id, description, inputSchema: { ...parameters, type: "object" } }]
}

function assertOffered(name: string, listed: readonly ToolListing[]): void {
  const tool = listed.find(({ id }) => id === name)
  if (tool?.offered) return
  const names = listed.filter(({ offered }) => offered).map(({ id }) => id)
  const why = tool ? `The tool "${name}" is not offered: ${tool.reason}` : `There is no tool "${name}"`
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${why}. There are: ${names.join(", ")}.`)
}
