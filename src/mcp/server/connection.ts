import type { Readable, Writable } from "node:stream"
import { Server } from "@modelcontextprotocol/server"
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import type { Caller } from "../../engine/standalone-calls.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import { AbortedError } from "../../util/abort.ts"
import { answerPermission, answerQuestion } from "./answer-requests.ts"
import { createClientCalls } from "./client-calls.ts"
import { createClientLog, type Warnings } from "./client-log.ts"
import { createForms } from "./forms.ts"
import { offerCompletion, offerPrompts } from "./prompts.ts"
import { offerResources } from "./resources.ts"
import { offerSubscriptions } from "./subscriptions.ts"
import { offerTools } from "./tools.ts"

/** The settings that all clients of a server share. */
export interface ConnectionOptions {
  tackle: Tackle
  /** Agent whose rules and tools apply. Default: the engine's default agent. */
  agent?: string
  /**
   * Whether the client's answers to forms count as the user's answers. If false, the client receives no forms, and
   * permission requests and questions are rejected.
   */
  trustClient: boolean
  /** Ids of the tools to offer. Default: all of the agent's tools. */
  tools?: readonly string[]
  /** Server version that is reported to clients. */
  version: string
  /** Returns the full text of a permission request for the user. */
  describe(request: PermissionRequest): string
  /** Engine warnings to send to clients. Default: none. */
  warnings?: Warnings
  /** Interval for checking subscribed files, in milliseconds. Default: 1000. */
  watchMs?: number
  /**
   * HTTP only: time in milliseconds after which a running call closes its stream. A client that supports reconnecting
   * then reconnects to receive the remaining messages. Default: the stream stays open until the call ends.
   */
  streamMs?: number
  /** Called for problems that no response reports. */
  onProblem(message: string, error: unknown): void
}

/** The connection between one MCP client and the engine. */
export interface Connection {
  /** The protocol server. Connect it to the client's transport. */
  server: Server
  /** Ends the client's calls, jobs, grants and subscriptions, and closes the transport. */
  close(): Promise<void>
}

/** Creates the connection for one client. Connections share only the services in their options. */
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
  const closing = new AbortController()
  const forms = createForms(server, options)
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
    watchMs: options.watchMs,
  })
  offerPrompts(server, { tackle, calls, tools, resources })
  offerCompletion(server, { tackle, agent, tools })
  let opened: Caller | undefined

  server.onerror = (error) => onProblem("an MCP message could not be handled", error)
  server.oninitialized = () => {
    for (const { file, message } of tackle.problems()) void log.send("warning", `${file}: ${message}`)
  }

  /** Created on first use, because the client's capabilities are unknown before initialization. */
  function caller(): Caller {
    opened ??= tackle.caller({
      questions: forms.unavailableReason() === undefined,
      agent,
      tools: chosen,
    })
    return opened
  }

  const unsubscribe = [
    tackle.on("permission.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const messageID = request.tool?.messageID
      const show = forms.forCall(request.id, calls.requestOf(messageID))
      if (!show) calls.noteUnanswered(messageID)
      answerPermission(request, { tackle, show, describe }).catch(async (error: unknown) => {
        onProblem("a permission request could not be shown", error)
        calls.noteUnanswered(messageID)
        await tackle.reply(request.id, { reply: "reject" }, "client")
      })
    }),
    tackle.on("question.asked", (request) => {
      if (request.sessionID !== opened?.id) return
      const show = forms.forCall(request.id, calls.requestOf(request.tool?.messageID))
      answerQuestion(request, show).catch((error: unknown) => {
        onProblem("a question could not be shown", error)
        request.reject()
      })
    }),
    tackle.on("permission.replied", ({ requestID }) => forms.withdraw(requestID)),
    tackle.on("question.rejected", ({ requestID }) => forms.withdraw(requestID)),
    tackle.onToolsChanged(() => {
      tools.notifyIfChanged(closing.signal).catch((error: unknown) => {
        if (!closing.signal.aborted) onProblem("a client could not be notified of changed tools", error)
      })
    }),
    warnings?.on(({ level, text }) => void log.send(level, text)),
  ]

  return {
    server,
    async close() {
      closing.abort(new AbortedError("The connection to the client ended."))
      for (const stop of unsubscribe) stop?.()
      try {
        await opened?.close()
      } finally {
        // Close subscriptions after the calls, because a call can start a subscription.
        await subscriptions.close()
        await server.close()
      }
    },
  }
}

/**
 * Serves one client over two streams, with one message per line. When `input` ends or the signal aborts, ends the
 * client's calls and then resolves.
 */
export async function serveStdio(
  options: ConnectionOptions & { input: Readable; output: Writable; signal: AbortSignal },
): Promise<void> {
  const { input, output, signal } = options
  const transport = new StdioServerTransport(input, output)
  const connection = openConnection(options)
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  connection.server.onclose = resolve
  signal.addEventListener("abort", () => resolve(), { once: true })
  try {
    await connection.server.connect(transport)
    if (!signal.aborted) await gone
  } finally {
    await connection.close()
  }
}
