import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  SamplingMessage,
} from "@modelcontextprotocol/client"
import type { ToolContext } from "../../tool/context.ts"
import type { Sample, SampleMessage } from "../../tool/sample.ts"
import { McpCallError } from "./errors.ts"

/** So long is an answer at most, whatever the server wants. In tokens. */
const longestAnswer = 4096

/** So often may a server ask in one call. */
const mostSamples = 10

/**
 * Answers a server's requests to the model within one call, each once the rules or the person allowed it. `mcp_sampling`
 * asks with the server as the pattern, and shows what the model would be told. Rejects with `McpCallError` where there
 * is no model, the call asked too often or sends anything but text, with `PermissionError`, and as asking the model does.
 */
export function sampler(server: string, { ask, sample }: Pick<ToolContext, "ask" | "sample">) {
  let count = 0
  return async (params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> => {
    if (!sample) throw new McpCallError("There is no model here that could answer.")
    count += 1
    if (count > mostSamples)
      throw new McpCallError(`One call may ask the model ${mostSamples} times at most.`)
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
  const { systemPrompt, messages, temperature, maxTokens } = params
  return {
    ...(systemPrompt === undefined ? {} : { system: systemPrompt }),
    messages: messages.map(toMessage),
    maxOutputTokens: Math.min(Math.max(1, maxTokens), longestAnswer),
    ...(temperature === undefined ? {} : { temperature }),
    signal,
  }
}

function toMessage({ role, content }: SamplingMessage): SampleMessage {
  const texts = [content].flat().map((block) => {
    if (block.type !== "text")
      throw new McpCallError(`Only text can be sent to the model, not ${block.type}.`)
    return block.text
  })
  return { role, text: texts.join("\n\n") }
}
