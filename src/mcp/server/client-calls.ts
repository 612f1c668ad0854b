import {
  type ClientCapabilities,
  type CreateMessageResult,
  type CreateMessageResultWithTools,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { CallOutcome } from "../../call/context.ts"
import type { Caller } from "../../engine/standalone-calls.ts"
import type { ToolStateCompleted, ToolStateRunning } from "../../schema/tool-state.ts"
import type { Sample } from "../../tool/context.ts"
import type { Info } from "../../tool/tool.ts"
import { newId } from "../../util/id.ts"
import { isRecord } from "../../util/json.ts"
import type { ClientLog } from "./client-log.ts"
import { type Forms, forwardForms } from "./forms.ts"

/** A tool call that is made for a client's request. */
export interface ClientCall {
  tool: string
  input: Readonly<Record<string, unknown>>
  /** Tool that runs in place of one of the engine's tools. See `CallerCall`. */
  by?: Info
}

/** The outcome of a call. */
export interface ClientOutcome {
  state: CallOutcome["state"]
  /**
   * Explains why the user was not asked, and how to allow the call without asking. Undefined unless the call needed
   * permission and its form could not be shown or failed.
   */
  hint: string | undefined
}

/** Runs the calls of one client: its tool calls, and the calls that its prompts and resources need. */
export interface ClientCalls {
  /**
   * Runs a call within the client's request and reports its progress. Rejects with `AbortedError` if the client cancels
   * the request before the call starts.
   */
  run(context: ServerContext, call: ClientCall): Promise<ClientOutcome>
  /** Returns the client request whose running call has this message id. */
  requestOf(messageID: string | undefined): ServerContext | undefined
  /** Records that a permission for the call was refused because no user could be asked. */
  noteUnanswered(messageID: string | undefined): void
}

/** Creates the call runner for one client. */
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
  const pending = new Map<string, { context: ServerContext; unanswered: boolean }>()

  return {
    async run(context, { tool, input, by }) {
      const { mcpReq, http } = context
      const messageID = newId("msg")
      const progress = createProgress(context, onProblem)
      const entry = { context, unanswered: false }
      pending.set(messageID, entry)
      const sent = [log.send("info", `${tool}: started`, mcpReq)]
      const onProgress = (state: ToolStateRunning) => {
        progress.report(state)
        const line = progressLine(state)
        if (line !== undefined) sent.push(log.send("debug", `${tool}: ${line}`, mcpReq))
      }
      const closing = streamMs === undefined ? undefined : setTimeout(() => http?.closeSSE?.(), streamMs)
      try {
        const { state } = await caller().call({
          tool,
          input: JSON.stringify(input),
          messageID,
          signal: mcpReq.signal,
          onProgress,
          by,
          form: forwardForms(forms, context),
          sample: forwardSampling(server.getClientCapabilities(), context),
        })
        sent.push(log.send("info", `${tool}: ${state.status}`, mcpReq))
        return { state, hint: entry.unanswered ? hintFor(forms.unavailableReason()) : undefined }
      } finally {
        clearTimeout(closing)
        pending.delete(messageID)
        await progress.end()
        await Promise.all(sent)
      }
    },
    requestOf: (messageID = "") => pending.get(messageID)?.context,
    noteUnanswered(messageID = "") {
      const entry = pending.get(messageID)
      if (entry) entry.unanswered = true
    },
  }
}

function hintFor(reason = "The form failed in the MCP client."): string {
  return `${reason} To allow such calls without asking, add a rule to Tackle's configuration, or start the server with --allow.`
}

/** Returns the completed state. Throws `ProtocolError` with the reason if the call failed. */
export function completedOf({ state, hint }: ClientOutcome): ToolStateCompleted {
  if (state.status === "completed") return state
  const why = hint === undefined ? state.error : `${state.error} ${hint}`
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, why)
}

/** Maximum length of a progress line, in characters. */
const maxLine = 200

/**
 * Reports the progress of one call if the client requested progress. If the tool does not report a count, the number of
 * reports is the count.
 */
function createProgress({ mcpReq }: ServerContext, onProblem: (message: string, error: unknown) => void) {
  const progressToken = mcpReq._meta?.progressToken
  let reached = Number.NEGATIVE_INFINITY
  let reports = 0
  let ended = false
  let last: Promise<void> = Promise.resolve()

  return {
    report(state: ToolStateRunning): void {
      const { metadata = {} } = state
      if (progressToken === undefined || ended || mcpReq.signal.aborted) return
      const { done, total } = isRecord(metadata.progress) ? metadata.progress : {}
      reports += 1
      const progress = typeof done === "number" ? done : reports
      // The protocol requires increasing values.
      if (progress <= reached) return
      reached = progress
      const params = {
        progressToken,
        progress,
        total: typeof total === "number" ? total : undefined,
        message: progressLine(state),
      }
      last = last
        .then(() => mcpReq.notify({ method: "notifications/progress", params }))
        .catch((error: unknown) => onProblem("progress could not be sent", error))
    },
    /** Stops reporting. Resolves when all reports have been sent. */
    async end(): Promise<void> {
      ended = true
      await last
    },
  }
}

/** Returns the last line of the output, or the call's title if that line is empty. */
function progressLine({ title, metadata = {} }: ToolStateRunning): string | undefined {
  const { output } = metadata
  const line = typeof output === "string" ? output.trimEnd().split("\n").at(-1)?.slice(0, maxLine) : undefined
  return line || title
}

/** Time limit for a sampling request, in milliseconds. It includes the time in which the client asks its user. */
const samplingMs = 60 * 60 * 1000

/**
 * Returns a handler that forwards sampling requests from upstream MCP servers to the client's model, or undefined if
 * the client does not support sampling.
 */
function forwardSampling(
  capabilities: ClientCapabilities | undefined,
  { mcpReq }: ServerContext,
): Sample | undefined {
  if (!capabilities?.sampling) return undefined
  return async ({ system, messages, maxOutputTokens, temperature, signal }) => {
    const result = await mcpReq.requestSampling(
      {
        systemPrompt: system,
        messages: messages.map(({ role, text }) => ({ role, content: { type: "text", text } })),
        maxTokens: maxOutputTokens,
        temperature,
      },
      {
        signal: AbortSignal.any([signal, mcpReq.signal]),
        timeout: samplingMs,
        // Uses the stream of the call, which may be the client's only stream over HTTP.
        relatedRequestId: mcpReq.id,
      },
    )
    return { text: textOf(result), model: result.model, cut: result.stopReason === "maxTokens" }
  }
}

function textOf({ content }: CreateMessageResult | CreateMessageResultWithTools): string {
  return [content]
    .flat()
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n\n")
}
