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

/** A tool that a request offers to the model. */
export interface OfferedTool {
  name: string
  description: string
  inputSchema: JsonSchema
}

/** A request to a model. */
export interface CallRequest {
  language: LanguageModelV4
  /** Properties of the model: its name for errors, its quirks, and its configured timeouts. */
  info?: ModelInfo
  prompt: LanguageModelV4Prompt
  /** Tools that the request offers. They are sent even if `toolChoice` is `none`. */
  tools: readonly OfferedTool[]
  toolChoice?: "auto" | "none" | "required"
  /** The JSON Schema for the answer, for servers that support it. */
  answerSchema?: JsonSchema
  maxOutputTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  /** Key for the server's prompt cache. It is the same in all requests of a session. */
  cacheKey?: string
  /** Options for the provider package, without the provider's name as an outer key. Must be plain data. */
  providerOptions?: Readonly<Record<string, unknown>>
  headers?: Record<string, string>
}

/** Converts a request to the provider interface and applies the model's quirks. */
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
  const effectiveTemperature = temperature ?? quirks.temperature
  if (effectiveTemperature !== undefined) options.temperature = effectiveTemperature
  if (request.topP !== undefined) options.topP = request.topP
  if (request.topK !== undefined) options.topK = request.topK
  const cache = cacheKeyOptions(quirks.cacheKey, request.cacheKey)
  if (cache.options !== undefined || request.providerOptions !== undefined) {
    // `openai.responses` reads the `openai` options.
    const key = info?.server?.optionsKey ?? request.language.provider.split(".", 1)[0] ?? ""
    const own = request.providerOptions as SharedV4ProviderOptions[string] | undefined
    options.providerOptions = { [key]: { ...cache.options, ...own } }
  }
  if (cache.headers !== undefined || headers !== undefined) options.headers = { ...cache.headers, ...headers }
  return options
}

/** Returns the cache key as a package option or a header, if the server supports either. */
function cacheKeyOptions(
  wanted: CacheKey | undefined,
  value: string | undefined,
): { options?: Record<string, string>; headers?: Record<string, string> } {
  if (wanted === undefined || value === undefined) return {}
  return "header" in wanted
    ? { headers: { [wanted.header]: value } }
    : { options: { [wanted.option]: value } }
}
