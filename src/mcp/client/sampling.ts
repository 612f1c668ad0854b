import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  SamplingMessage,
} from "@modelcontextprotocol/client"
import type { Sample, SampleMessage, ToolContext } from "../../tool/context.ts"
import { McpCallError } from "./errors.ts"

/** Limit for one answer, in tokens. */
const maxTokens = 4096

/** Limit of requests in one call. */
const maxRequests = 10

/**
 * Answers the requests to the model that a server makes in one call. Each asks for the permission `mcp_sampling`, with the
 * server as the pattern and the messages in the metadata. Rejects with `McpCallError` without a model, over the limit and
 * for content other than text, with `PermissionError`, and as the model request does.
 */
export function sampler(server: string, { ask, sample }: Pick<ToolContext, "ask" | "sample">) {
  let count = 0
  return async (params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> => {
    if (!sample) throw new McpCallError("No model is available for sampling.")
    count += 1
    if (count > maxRequests)
      throw new McpCallError(`One call can ask the model at most ${maxRequests} times.`)
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
