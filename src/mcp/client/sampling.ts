import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  SamplingMessage,
} from "@modelcontextprotocol/client"
import type { Sample, SampleMessage, ToolContext } from "../../tool/context.ts"
import { McpCallError } from "./errors.ts"

/** Maximum length of a response, in tokens. */
const maxTokens = 4096

/** Maximum number of model requests in one call. */
const maxRequests = 10

/**
 * Returns a function that answers a server's model requests during one call. Each request asks for the permission
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
