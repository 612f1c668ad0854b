import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider"

/** A whole answer as the parts of a stream. */
export function* toParts(result: LanguageModelV4GenerateResult): Generator<LanguageModelV4StreamPart> {
  for (const [index, content] of result.content.entries()) {
    const id = String(index)
    const metadata = content.providerMetadata && { providerMetadata: content.providerMetadata }
    if (content.type === "text") {
      yield { type: "text-start", id, ...metadata }
      yield { type: "text-delta", id, delta: content.text }
      yield { type: "text-end", id }
    } else if (content.type === "reasoning") {
      yield { type: "reasoning-start", id }
      yield { type: "reasoning-delta", id, delta: content.text }
      yield { type: "reasoning-end", id, ...metadata }
    } else yield content
  }
  const { finishReason, usage, providerMetadata } = result
  yield { type: "finish", finishReason, usage, ...(providerMetadata && { providerMetadata }) }
}

/** The whole answer that the parts of a stream amount to. */
export function fromParts(
  parts: readonly LanguageModelV4StreamPart[],
): Pick<LanguageModelV4GenerateResult, "content"> &
  Partial<Pick<LanguageModelV4GenerateResult, "finishReason" | "usage" | "providerMetadata">> {
  const content: LanguageModelV4Content[] = []
  let block: Extract<LanguageModelV4Content, { type: "text" | "reasoning" }> | undefined
  for (const part of parts) {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const type = part.type === "text-start" ? "text" : "reasoning"
        const metadata = part.providerMetadata && { providerMetadata: part.providerMetadata }
        const begun: NonNullable<typeof block> = { type, text: "", ...metadata }
        content.push(begun)
        block = begun
        break
      }
      case "text-delta":
      case "reasoning-delta":
        if (block) block.text += part.delta
        break
      case "reasoning-end":
        if (block && part.providerMetadata) block.providerMetadata = part.providerMetadata
        break
      case "finish": {
        const { finishReason, usage, providerMetadata } = part
        return { content, finishReason, usage, ...(providerMetadata && { providerMetadata }) }
      }
      case "text-end":
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-end":
      case "stream-start":
      case "response-metadata":
      case "raw":
      case "ping":
      case "error":
        break
      default:
        content.push(part)
    }
  }
  return { content }
}
