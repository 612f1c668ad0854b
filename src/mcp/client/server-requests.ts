import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import {
  type Client,
  type ClientCapabilities,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type ElicitRequestFormParams,
  type ElicitResult,
  ProtocolError,
  ProtocolErrorCode,
  type SamplingMessage,
} from "@modelcontextprotocol/client"
import type { Sample, SampleMessage, ToolContext } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { McpCallError } from "./errors.ts"

/** Handles the requests that a server makes during a call. */
export interface RequestAnswers {
  elicit(form: ElicitRequestFormParams, signal: AbortSignal): Promise<ElicitResult>
  sample(request: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>
}

/** Client capabilities: the requests that a server may make. */
export const requestCapabilities: ClientCapabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }

/**
 * Handles the server's requests. `roots/list` returns the worktree. `answers` returns the handler for forms and
 * sampling, or undefined if the request cannot be assigned to a call. In that case, forms are declined and sampling
 * fails. Requests to open a URL are always declined.
 */
export function answerRequests(
  client: Client,
  { worktree, answers }: { worktree: string; answers(): RequestAnswers | undefined },
): void {
  client.setRequestHandler("roots/list", () => ({
    roots: [{ uri: pathToFileURL(worktree).href, name: basename(worktree) }],
  }))
  client.setRequestHandler("elicitation/create", async ({ params }, ctx) => {
    const current = params.mode === "url" ? undefined : answers()
    if (params.mode === "url" || !current) return { action: "decline" }
    return await asProtocolError(() => current.elicit(params, ctx.mcpReq.signal))
  })
  client.setRequestHandler("sampling/createMessage", async ({ params }, ctx) => {
    const current = answers()
    if (!current) throw invalidRequest("Sampling is possible only during calls of a single session.")
    return await asProtocolError(() => current.sample(params, ctx.mcpReq.signal))
  })
}

async function asProtocolError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw invalidRequest(errorMessage(error))
  }
}

function invalidRequest(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidRequest, message)
}

/** Maximum length of a response, in tokens. */
const maxTokens = 4096

/** Maximum number of model requests in one call. */
const maxRequests = 10

/**
 * Returns a function that handles a server's model requests during one call. Each request asks for the permission
 * `mcp_sampling`, with the server as the pattern and the messages in the metadata. Rejects with `McpCallError` if no
 * model is available, the limit is exceeded, or the content is not text. Rejects with `PermissionError` if permission
 * is refused, and otherwise with the errors of the model request.
 */
export function sampler(server: string, { ask, sample }: Pick<ToolContext, "ask" | "sample">) {
  let count = 0
  return async (params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> => {
    if (!sample) throw new McpCallError("No model is available for sampling.")
    count += 1
    if (count > maxRequests)
      throw new McpCallError(`One call can send at most ${maxRequests} requests to the model.`)
    const request = toRequest(params, signal)
    const { system, messages, maxOutputTokens } = request
    await ask({
      permission: "mcp_sampling",
      patterns: [server],
      always: [server],
      metadata: { server, system, messages, maxOutputTokens },
    })
    const { text, model, cut } = await sample(request)
    return {
      role: "assistant",
      content: { type: "text", text },
      model,
      stopReason: cut ? "maxTokens" : "endTurn",
    }
  }
}

function toRequest(params: CreateMessageRequestParams, signal: AbortSignal): Parameters<Sample>[0] {
  return {
    system: params.systemPrompt,
    messages: params.messages.map(toMessage),
    maxOutputTokens: Math.min(Math.max(1, params.maxTokens), maxTokens),
    temperature: params.temperature,
    signal,
  }
}

function toMessage({ role, content }: SamplingMessage): SampleMessage {
  const texts = [content].flat().map((block) => {
    if (block.type !== "text") throw new McpCallError(`Sampling supports only text, not ${block.type}.`)
    return block.text
  })
  return { role, text: texts.join("\n\n") }
}
