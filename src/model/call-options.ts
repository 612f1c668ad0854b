import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider"
import type { JsonSchema } from "../util/json-schema.ts"
import type { ModelInfo } from "./model.ts"
import { type CacheKey, quirksOf } from "./quirks.ts"
import { transformSchema } from "./schema-transforms.ts"

/** A tool as the model sees it. */
export interface OfferedTool {
  name: string
  description: string
  inputSchema: JsonSchema
}

/** What a model is asked, and with what. */
export interface CallRequest {
  language: LanguageModelV4
  /** Gives errors the model's name, schemas its family's form, and patience what the config says of it. */
  info?: ModelInfo
  prompt: LanguageModelV4Prompt
  /** Sent with every request, also where `toolChoice` forbids to use them. */
  tools: readonly OfferedTool[]
  toolChoice?: "auto" | "none" | "required"
  /** The JSON Schema of the answer, where the server knows such a thing. */
  answerSchema?: JsonSchema
  maxOutputTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  /** The same for all requests of a session, for servers that keep by it what they computed. */
  cacheKey?: string
  /** Options of the provider's own package, without the name of the provider. Plain data. */
  providerOptions?: Readonly<Record<string, unknown>>
  headers?: Record<string, string>
}

/** The request in the provider interface's words, with what the table of quirks adds for the model. */
export function callOptions(request: CallRequest, abortSignal: AbortSignal): LanguageModelV4CallOptions {
  const { prompt, info, tools, answerSchema, maxOutputTokens, temperature, headers } = request
  const options: LanguageModelV4CallOptions = { prompt, abortSignal }
  const quirks = quirksOf(info)
  if (tools.length > 0) {
    options.tools = tools.map(({ name, description, inputSchema }) => ({
      type: "function",
      name,
      description,
      inputSchema: transformSchema(inputSchema, quirks.schema ?? []),
    }))
    options.toolChoice = { type: request.toolChoice ?? "auto" }
  }
  if (answerSchema !== undefined)
    options.responseFormat = { type: "json", schema: answerSchema, name: "answer" }
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens
  const warmth = temperature ?? quirks.temperature
  if (warmth !== undefined) options.temperature = warmth
  if (request.topP !== undefined) options.topP = request.topP
  if (request.topK !== undefined) options.topK = request.topK
  const kept = keepBy(quirks.cacheKey, request.cacheKey)
  if (kept.options !== undefined || request.providerOptions !== undefined) {
    // As the packages name themselves: `openai` of `openai.responses`.
    const key = info?.server?.optionsKey ?? request.language.provider.split(".", 1)[0] ?? ""
    const own = request.providerOptions as SharedV4ProviderOptions[string] | undefined
    options.providerOptions = { [key]: { ...kept.options, ...own } }
  }
  if (kept.headers !== undefined || headers !== undefined) options.headers = { ...kept.headers, ...headers }
  return options
}

/** The session's name, where this server wants it. */
function keepBy(
  wanted: CacheKey | undefined,
  value: string | undefined,
): { options?: Record<string, string>; headers?: Record<string, string> } {
  if (wanted === undefined || value === undefined) return {}
  return "header" in wanted
    ? { headers: { [wanted.header]: value } }
    : { options: { [wanted.option]: value } }
}
