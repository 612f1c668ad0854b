import type { LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider"
import * as z from "zod"
import type { ModelRef } from "../schema/message.ts"
import { dialectNames } from "../synthetic/dialect.ts"
import { UsageError } from "../util/errors.ts"

/** A model of the AI SDK's provider interface. Re-exported for other folders. */
export type LanguageModel = LanguageModelV4
/** The history in the format of the provider interface. */
export type ModelPrompt = LanguageModelV4Prompt

/** The wire format of a provider. `history-to-prompt.ts` and `quirks.ts` implement the differences. */
export type ProviderFamily = "openai-compatible" | "openai" | "anthropic" | "google" | "other"

/** The properties of a model that are known without a request. */
export interface ModelInfo {
  ref: ModelRef
  /** Display name. */
  name: string
  /** Whether the server accepts `tools`. */
  toolCall: boolean
  /** Limits in tokens. A missing limit is unknown, not infinite. */
  limit: { context?: number; output?: number }
  /** US dollars per million tokens. A missing price is unknown and counts as 0. */
  cost?: { input: number; output: number; cacheRead?: number; cacheWrite?: number }
  /**
   * Whether the model accepts images and the other file types that its family supports. If not true, a note replaces
   * each of these files.
   */
  attachment?: boolean
  /** Whether the server accepts a JSON Schema for the answer, including in requests with tools. */
  structuredOutput?: boolean
  /** Wire format. Default: `openai-compatible`. */
  family?: ProviderFamily
  /** The server, if it is known. */
  server?: ModelServer
  /** Configured timeouts in milliseconds: see `StreamLimits`. */
  timeouts?: { firstByteMs?: number; idleMs?: number }
}

/** A model's configured server. */
export interface ModelServer {
  /** AI SDK package for the server's protocol. */
  package: string
  /** Host without the port. Empty if the provider package chooses the host. */
  host: string
  /** Key of `providerOptions` that the package reads. */
  optionsKey: string
}

/** A model with its known properties and a function that loads it. */
export interface Model {
  info: ModelInfo
  /**
   * Returns the model in the provider interface. Loads the provider package on the first call. Later calls return the
   * same object. Rejects with `UsageError` if a required key is missing or the package cannot be used.
   */
  language(): Promise<LanguageModelV4>
}

/**
 * Parses `provider/model`. The first slash is the separator: `openrouter/meta/llama` is the model `meta/llama`. Throws
 * `UsageError` for any other text, with the `known` names in the message.
 */
export function parseModelName(name: string, known: readonly string[] = []): ModelRef {
  const text = name.trim()
  const slash = text.indexOf("/")
  if (slash > 0 && slash < text.length - 1) {
    return { providerID: text.slice(0, slash), modelID: text.slice(slash + 1) }
  }
  const list = known.length > 0 ? ` Known: ${known.join(", ")}.` : ""
  throw new UsageError(`"${name}" is not a model name. Use provider/model, such as openai/gpt-6.2.${list}`)
}

/** Returns `provider/model`. */
export function modelName(ref: ModelRef): string {
  return `${ref.providerID}/${ref.modelID}`
}

/** The tool policy: see `tool-policy.ts`. */
const ToolCalling = z.enum(["native", "synthetic", "reject", "ignore", "auto"])
export type ToolCalling = z.infer<typeof ToolCalling>

// These schemas are shared, since creating a schema takes time at every start.
const text = z.string().optional()
const price = z.number().nonnegative()
const size = z.int().nonnegative().optional()
const milliseconds = z.int().positive()
const timeout = milliseconds.optional()
const toolCalling = ToolCalling.optional()
const flag = z.boolean().optional()

/** One entry of `provider.<id>.models`. */
export const ModelConfig = z.lazy(() =>
  z.strictObject({
    /** The model id in requests, if it differs from the key. */
    id: z.string().min(1).optional(),
    name: text,
    limit: z.strictObject({ context: size, output: size }).optional(),
    /**
     * Whether the server accepts `tools`. If false, the default for `toolCalling` is `synthetic` instead of `native` or
     * `auto`.
     */
    tool_call: flag,
    /** Default: the provider's value, or else `auto`. */
    toolCalling,
    /** Format of synthetic calls. By default, it depends on the model's name. */
    toolDialect: z.enum(dialectNames).optional(),
    attachment: flag,
    /**
     * Whether the server accepts a JSON Schema for the answer. Defaults to true for `@ai-sdk/openai` and to false for
     * other packages.
     */
    structured_output: flag,
    /** US dollars per million tokens. */
    cost: z
      .strictObject({
        input: price,
        output: price,
        cache_read: price.optional(),
        cache_write: price.optional(),
      })
      .optional(),
    /** Provider options for every request. Compatible servers receive them as fields of the request body. */
    options: z.record(z.string(), z.json()).optional(),
  }),
)
export type ModelConfig = z.infer<typeof ModelConfig>

/** The config section `provider.<id>`. Other keys in `options` are passed to the provider package. */
export const ProviderConfig = z.lazy(() =>
  z.strictObject({
    /** AI SDK package. Defaults to the package of the known provider, or else to `@ai-sdk/openai-compatible`. */
    npm: z.string().min(1).optional(),
    name: text,
    /** API of an `@ai-sdk/openai` provider. Default: `responses` if OpenAI operates the server, otherwise `chat`. */
    api: z.enum(["chat", "responses"]).optional(),
    /** Environment variables for the key. The first one that is set is used. */
    env: z.array(z.string()).optional(),
    options: z
      .looseObject({
        baseURL: text,
        apiKey: text,
        headers: z.record(z.string(), z.string()).optional(),
        /** Time limit for an answer, in milliseconds. False, the default, means no limit. */
        timeout: z.union([milliseconds, z.literal(false)]).optional(),
        /** Time limit for the start of an answer, in milliseconds. */
        headerTimeout: timeout,
        /** Maximum silence within an answer, in milliseconds. */
        chunkTimeout: timeout,
      })
      .optional(),
    /** Default tool policy for the models of this provider. */
    toolCalling,
    models: z.record(z.string(), ModelConfig).optional(),
  }),
)
export type ProviderConfig = z.infer<typeof ProviderConfig>
