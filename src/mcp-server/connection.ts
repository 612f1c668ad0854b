import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from "@modelcontextprotocol/server"
import type { Caller } from "../runtime/caller.ts"
import type { Tackle } from "../runtime/tackle.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import { newId } from "../util/id.ts"
import { answerPermission } from "./answer-permission.ts"
import { answerQuestion } from "./answer-question.ts"
import { contentOf } from "./content.ts"
import { canAskByForm, createForms } from "./forms.ts"
import { createProgress } from "./progress.ts"

export interface ConnectionOptions {
  tackle: Tackle
  /** Whose rules and tools. Default: the engine's default agent. */
  agent?: string
  /** Ids of the tools that are offered. Default: all that the agent has. */
  tools?: readonly string[]
  /** What the server says of its own version. */
  version: string
  /** What a person reads of a request, whole. */
  describe(request: PermissionRequest): string
  /** Faults that no answer tells of. */
  onFault(message: string, error: unknown): void
}

/** The engine as one client sees it. */
export interface Connection {
  /** To be connected with the transport on which the client is. */
  server: Server
  /** Ends the client's calls, jobs and grants. The transport is not closed by it. */
  close(): Promise<void>
}

/** Serves one client. Nothing of one client's standing is another's. */
export function openConnection(options: ConnectionOptions): Connection {
  const { tackle, agent, tools, version, describe, onFault } = options
  const server = new Server({ name: "tackle", title: "Tackle", version }, { capabilities: { tools: {} } })
  /** The requests of the client that are under way, by the id that their calls have in what they ask. */
  const calls = new Map<string, ServerContext>()
  /** Ids of those that asked what nobody could be asked. */
  const unasked = new Set<string>()
  const forms = createForms(server)
  let opened: Caller | undefined

  server.onerror = (error) => onFault("an MCP message could not be taken", error)
  server.setRequestHandler("tools/list", async (_request, { mcpReq }) => {
    const listed = await caller().tools(mcpReq.signal)
    return {
      tools: listed
        .filter(({ offered }) => offered)
        .map(({ id, description, parameters }) => ({
          name: id,
          description,
          inputSchema: { ...parameters, type: "object" as const },
        })),
    }
  })
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: given } }, context) => {
    const { signal } = context.mcpReq
    await assertOffered(name, signal)
    const messageID = newId("msg")
    const progress = createProgress(context, onFault)
    calls.set(messageID, context)
    try {
      const { state } = await caller().call({
        tool: name,
        input: JSON.stringify(given ?? {}),
        messageID,
        signal,
        onProgress: progress.report,
      })
      const result = await contentOf(state)
      if (unasked.has(messageID)) result.content.push({ type: "text", text: nobodyToAsk })
      return result
    } finally {
      calls.delete(messageID)
      unasked.delete(messageID)
      await progress.end()
    }
  })

  /** Known only once the client has said what it can do. */
  function caller(): Caller {
    opened ??= tackle.caller({
      questions: canAskByForm(server.getClientCapabilities()),
      ...(agent === undefined ? {} : { agent }),
      ...(tools === undefined ? {} : { tools }),
    })
    return opened
  }

  async function assertOffered(name: string, signal: AbortSignal): Promise<void> {
    const listed = await caller().tools(signal)
    const tool = listed.find(({ id }) => id === name)
    if (tool?.offered) return
    const names = listed.filter(({ offered }) => offered).map(({ id }) => id)
    const why = tool ? `The tool "${name}" is not offered: ${tool.reason}` : `There is no tool "${name}"`
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${why}. There are: ${names.join(", ")}.`)
  }

  const unsubscribe = [
    tackle.on("permission.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const messageID = request.tool?.messageID ?? ""
      const ask = forms.forCall(request.id, calls.get(messageID))
      if (!ask) unasked.add(messageID)
      answerPermission(request, { tackle, ask, describe }).catch(async (error: unknown) => {
        onFault("a permission could not be asked for", error)
        unasked.add(messageID)
        await tackle.reply(request.id, { reply: "reject" }, "no-terminal")
      })
    }),
    tackle.on("question.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const ask = forms.forCall(request.id, calls.get(request.tool?.messageID ?? ""))
      answerQuestion(request, ask).catch((error: unknown) => {
        onFault("a question could not be asked", error)
        request.reject()
      })
    }),
    tackle.on("permission.replied", ({ requestID }) => forms.withdraw(requestID)),
    tackle.on("question.rejected", ({ requestID }) => forms.withdraw(requestID)),
  ]

  return {
    server,
    async close() {
      await opened?.close()
      for (const stop of unsubscribe) stop()
      await server.close()
    },
  }
}

const nobodyToAsk =
  "This MCP client cannot show forms (elicitation), so nobody could be asked. A rule in Tackle's configuration, or --allow where the server is started, decides without asking."
