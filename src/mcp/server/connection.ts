import { Server } from "@modelcontextprotocol/server"
import type { Caller } from "../../engine/caller.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import { AbortedError } from "../../util/abort.ts"
import { answerPermission } from "./answer-permission.ts"
import { answerQuestion } from "./answer-question.ts"
import { createClientCalls } from "./client-calls.ts"
import { createClientLog } from "./client-log.ts"
import { offerCompletion } from "./completion.ts"
import { canAskByForm, createForms } from "./forms.ts"
import { offerPrompts } from "./offered-prompts.ts"
import { offerResources } from "./offered-resources.ts"
import { offerTools } from "./offered-tools.ts"
import { offerSubscriptions } from "./subscriptions.ts"
import type { Warnings } from "./warnings.ts"

/** What clients are offered, the same for all of a server. */
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
  /** What clients are told of the engine's faults. Default: nothing. */
  warnings?: Warnings
  /** How often the files are looked at that a client subscribed to, in milliseconds. Default: every second. */
  lookEveryMs?: number
  /**
   * Over HTTP: how long a call keeps its stream open, in milliseconds. Then the client comes back for the rest, if it
   * knows how to. Default: to its end.
   */
  streamMs?: number
  /** Faults that no answer tells of. */
  onProblem(message: string, error: unknown): void
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
  const { tackle, agent, tools: chosen, version, describe, warnings, onProblem } = options
  const server = new Server(
    { name: "tackle", title: "Tackle", version },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: {},
        completions: {},
        logging: {},
      },
    },
  )
  const leaving = new AbortController()
  const forms = createForms(server)
  const log = createClientLog(server, onProblem)
  const calls = createClientCalls({ server, caller, forms, log, streamMs: options.streamMs, onProblem })
  const tools = offerTools(server, {
    caller,
    calls,
    onCompleted: (tool, state) => resources.noteOutput(tool, state),
    onProblem,
  })
  const resources = offerResources(server, { tackle, calls, tools })
  const subscriptions = offerSubscriptions(server, {
    tackle,
    calls,
    find: resources.find,
    onProblem,
    everyMs: options.lookEveryMs,
  })
  offerPrompts(server, { tackle, calls, tools, resources })
  offerCompletion(server, { tackle, agent, tools })
  let opened: Caller | undefined

  server.onerror = (error) => onProblem("an MCP message could not be taken", error)
  server.oninitialized = () => {
    for (const { file, message } of tackle.problems()) void log.tell("warning", `${file}: ${message}`)
  }

  /** Known only once the client has said what it can do. */
  function caller(): Caller {
    opened ??= tackle.caller({
      questions: canAskByForm(server.getClientCapabilities()),
      ...(agent === undefined ? {} : { agent }),
      ...(chosen === undefined ? {} : { tools: chosen }),
    })
    return opened
  }

  const unsubscribe = [
    tackle.on("permission.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const messageID = request.tool?.messageID
      const ask = forms.forCall(request.id, calls.requestOf(messageID))
      if (!ask) calls.noteUnasked(messageID)
      answerPermission(request, { tackle, ask, describe }).catch(async (error: unknown) => {
        onProblem("a permission could not be asked for", error)
        calls.noteUnasked(messageID)
        await tackle.reply(request.id, { reply: "reject" }, "no-terminal")
      })
    }),
    tackle.on("question.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const ask = forms.forCall(request.id, calls.requestOf(request.tool?.messageID))
      answerQuestion(request, ask).catch((error: unknown) => {
        onProblem("a question could not be asked", error)
        request.reject()
      })
    }),
    tackle.on("permission.replied", ({ requestID }) => forms.withdraw(requestID)),
    tackle.on("question.rejected", ({ requestID }) => forms.withdraw(requestID)),
    tackle.onToolsChanged(() => {
      tools.compare(leaving.signal).catch((error: unknown) => {
        if (!leaving.signal.aborted) onProblem("a client could not be told of other tools", error)
      })
    }),
    warnings?.on(({ level, text }) => void log.tell(level, text)),
  ]

  return {
    server,
    async close() {
      leaving.abort(new AbortedError("The client is gone."))
      for (const stop of unsubscribe) stop?.()
      try {
        await opened?.close()
      } finally {
        // Now that no call is under way none is about to begin.
        await subscriptions.close()
        await server.close()
      }
    },
  }
}
