import type { Server, ServerContext } from "@modelcontextprotocol/server"
import type { CallOutcome } from "../../call/call.ts"
import type { Caller } from "../../engine/caller.ts"
import type { ToolStateRunning } from "../../schema/tool-state.ts"
import type { Info } from "../../tool/tool.ts"
import { newId } from "../../util/id.ts"
import type { ClientLog } from "./client-log.ts"
import { formOf } from "./form-of-server.ts"
import type { Forms } from "./forms.ts"
import { createProgress, progressLine } from "./progress.ts"
import { sampleOf } from "./sample.ts"

/** A call that a request of the client comes to. */
export interface ClientCall {
  tool: string
  input: Readonly<Record<string, unknown>>
  /** See `CallerCall`. */
  by?: Info
}

/** All calls of one client: those of tools, and those that its prompts and resources need. */
export interface ClientCalls {
  /**
   * Runs one within the client's request, which hears of its progress. `unasked`: leave was needed, and nobody could be
   * asked for it. Rejects with `AbortedError` where the client took the request back before the call had begun.
   */
  run(context: ServerContext, call: ClientCall): Promise<{ state: CallOutcome["state"]; unasked: boolean }>
  /** The request that is under way, by the message id in what its call asks. */
  requestOf(messageID: string | undefined): ServerContext | undefined
  /** Notes that nobody could be asked what the call asked. */
  noteUnasked(messageID: string | undefined): void
}

/** See {@link ClientCalls}. */
export function createClientCalls({
  server,
  caller,
  forms,
  log,
  streamMs,
  onProblem,
}: {
  server: Server
  caller(): Caller
  forms: Forms
  log: ClientLog
  /** See `ConnectionOptions`. */
  streamMs: number | undefined
  onProblem(message: string, error: unknown): void
}): ClientCalls {
  const underWay = new Map<string, { context: ServerContext; unasked: boolean }>()

  return {
    async run(context, { tool, input, by }) {
      const { mcpReq, http } = context
      const messageID = newId("msg")
      const progress = createProgress(context, onProblem)
      const entry = { context, unasked: false }
      underWay.set(messageID, entry)
      const told = [log.tell("info", `${tool}: started`, mcpReq)]
      const onProgress = (state: ToolStateRunning) => {
        progress.report(state)
        const line = progressLine(state)
        if (line !== undefined) told.push(log.tell("debug", `${tool}: ${line}`, mcpReq))
      }
      const closing = streamMs === undefined ? undefined : setTimeout(() => http?.closeSSE?.(), streamMs)
      const capabilities = server.getClientCapabilities()
      try {
        const { state } = await caller().call({
          tool,
          input: JSON.stringify(input),
          messageID,
          signal: mcpReq.signal,
          onProgress,
          ...(by === undefined ? {} : { by }),
          ...formOf(forms, context),
          ...sampleOf(capabilities, context),
        })
        told.push(log.tell("info", `${tool}: ${state.status}`, mcpReq))
        return { state, unasked: entry.unasked }
      } finally {
        clearTimeout(closing)
        underWay.delete(messageID)
        await progress.end()
        await Promise.all(told)
      }
    },
    requestOf: (messageID = "") => underWay.get(messageID)?.context,
    noteUnasked(messageID = "") {
      const entry = underWay.get(messageID)
      if (entry) entry.unasked = true
    },
  }
}
