import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider"
import type { LanguageModel } from "./model.ts"
import { alwaysStreamed } from "./whole-answer.ts"

/** A request to a model. It and its answers are named here for those above this folder. */
export type ModelCall = LanguageModelV4CallOptions
/** A part of an answer that streams in. */
export type ModelPart = LanguageModelV4StreamPart
/** A whole answer. */
export type ModelAnswer = LanguageModelV4GenerateResult
/** The tokens that an answer took, as far as the server tells. */
export type ModelUsage = LanguageModelV4Usage

/** The model, and the server it is asked at. */
export interface ChatServerOptions {
  /** With `/v1`, or whatever comes before `/chat/completions`. */
  baseURL: string
  modelID: string
  headers: Record<string, string>
  /** Goes into the body of each request, below what the call itself says. */
  body: Readonly<Record<string, unknown>>
  fetch: typeof fetch
}

/** One model of a chat completions server, without the config's words, retries and policies. Asks for usage in streams. */
export async function openChatModel(options: ChatServerOptions): Promise<LanguageModel> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
  const provider = createOpenAICompatible({
    name: "upstream",
    baseURL: options.baseURL,
    headers: options.headers,
    fetch: alwaysStreamed(options.fetch),
    includeUsage: true,
    transformRequestBody: (body) => ({ ...options.body, ...defined(body) }),
  })
  return provider(options.modelID)
}

/** A setting that the call leaves open is there as undefined, and would hide the one below it. */
function defined(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}
