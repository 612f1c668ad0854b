import type {
  ClientCapabilities,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ServerContext,
} from "@modelcontextprotocol/server"
import type { Sample } from "../../tool/sample.ts"

/** So long may the client's model, and whoever it asks for leave, take. In milliseconds. */
const patienceMs = 60 * 60 * 1000

/** Asks the client's model, for the MCP servers behind the engine. Nothing where the client has none to ask. */
export function sampleOf(
  capabilities: ClientCapabilities | undefined,
  { mcpReq }: ServerContext,
): { sample?: Sample } {
  if (!capabilities?.sampling) return {}
  return {
    async sample({ system, messages, maxOutputTokens, temperature, signal }) {
      const result = await mcpReq.requestSampling(
        {
          ...(system === undefined ? {} : { systemPrompt: system }),
          messages: messages.map(({ role, text }) => ({ role, content: { type: "text", text } })),
          maxTokens: maxOutputTokens,
          ...(temperature === undefined ? {} : { temperature }),
        },
        {
          signal: AbortSignal.any([signal, mcpReq.signal]),
          timeout: patienceMs,
          // On the stream of the call: over HTTP the client may have no other.
          relatedRequestId: mcpReq.id,
        },
      )
      return { text: textOf(result), model: result.model, cut: result.stopReason === "maxTokens" }
    },
  }
}

function textOf({ content }: CreateMessageResult | CreateMessageResultWithTools): string {
  return [content]
    .flat()
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n\n")
}
