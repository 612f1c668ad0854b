import type { LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider"
import * as z from "zod"
import type { ModelRef } from "../schema/message.ts"
import { dialectNames } from "../synthetic/dialect.ts"
import { UsageError } from "../util/errors.ts"

/** A model of the AI SDK's provider interface: named here for those above this folder. */
export type LanguageModel = LanguageModelV4
/** The history as such a model takes it. */
export type ModelPrompt = LanguageModelV4Prompt

/** Whose wire format a provider speaks. Habits of a family are data in `convert-message.ts` and `quirks.ts`. */
export type ProviderFamily = "openai-compatible" | "openai" | "anthropic" | "google" | "other"

/** What is known of a model without asking it. */
export interface ModelInfo {
  ref: ModelRef
  /** For people. */
  name: string
  /** False: the server takes no `tools`. */
  toolCall: boolean
  /** Tokens. A missing limit is unknown, not infinite. */
  limit: { context?: number; output?: number }
  /** US dollars per million tokens. Missing: unknown, counted as 0. */
  cost?: { input: number; output: number; cacheRead?: number; cacheWrite?: number }
  /** True: it takes images (and what else its family takes). Otherwise the model gets a note instead of the file. */
  attachment?: boolean
  /** True: the server can be told the JSON Schema of the answer, also beside tools. */
  structuredOutput?: boolean
  /** Default: `openai-compatible`. */
  family?: ProviderFamily
  /** Who is asked, where that is known. */
  server?: ModelServer
  /** What the config says about patience, in milliseconds: see `StreamLimits`. */
  timeouts?: { firstByteMs?: number; idleMs?: number }
}

/** A server as the config describes it. */
export interface ModelServer {
  /** The AI SDK package that speaks with it. */
  package: string
  /** Without the port. Empty: the package's own. */
  host: string
  /** The key of `providerOptions` that the package listens to. */
  optionsKey: string
}

/** A model that can be asked. `language` loads the provider's package on first use and is the same object after. */
export interface Model {
  info: ModelInfo
  /** Throws `ProviderError` of kind `auth` where a key is needed and there is none, before any request. */
  language(): Promise<LanguageModelV4>
}

/**
 * `provider/model` by its first slash, so that `openrouter/meta/llama` names the model `meta/llama`.
 * Throws `UsageError` for anything else; `known` names are listed in its text.
 */
export function parseModelName(name: string, known: readonly string[] = []): ModelRef {
  const text = name.trim()
  const slash = text.indexOf("/")
  if (slash > 0 && slash < text.length - 1) {
    return { providerID: text.slice(0, slash), modelID: text.slice(slash + 1) }
  }
  const list = known.length > 0 ? ` Known: ${known.join(", ")}.` : ""
  throw new UsageError(`"${name}" is no model name: write provider/model, such as openai/gpt-5.${list}`)
}

/** `provider/model`, as a person writes it. */
export function modelName(ref: ModelRef): string {
  return `${ref.providerID}/${ref.modelID}`
}

/** What is done with tools: see `tool-policy.ts`. */
const ToolCalling = z.enum(["native", "synthetic", "reject", "ignore", "auto"])
export type ToolCalling = z.infer<typeof ToolCalling>

// Shared, since making a schema takes time at every start.
const text = z.string().optional()
const price = z.number().nonnegative()
const size = z.int().nonnegative().optional()
const milliseconds = z.int().positive()
const patience = milliseconds.optional()
const toolCalling = ToolCalling.optional()
const flag = z.boolean().optional()

/** One entry of `provider.<id>.models`. */
export const ModelConfig = z.lazy(() =>
  z.strictObject({
    /** The name on the wire, where it differs from the key. */
    id: z.string().min(1).optional(),
    name: text,
    limit: z.strictObject({ context: size, output: size }).optional(),
    /** False: the server takes no `tools`. Then `toolCalling` is `synthetic`, unless it says otherwise. */
    tool_call: flag,
    /** Before that of the provider. Default: `auto`. */
    toolCalling,
    /** How calls are written where they are read from the text. Default: by the model's name. */
    toolDialect: z.enum(dialectNames).optional(),
    attachment: flag,
    /** True: the server takes a JSON Schema for the answer. Default: only OpenAI itself is known to. */
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
    /** Goes to the provider with every request; for compatible servers into the request's body. */
    options: z.record(z.string(), z.json()).optional(),
  }),
)
export type ModelConfig = z.infer<typeof ModelConfig>

/** The config's slice `provider.<id>`. Keys of `options` that are not named here go to the provider's package. */
export const ProviderConfig = z.lazy(() =>
  z.strictObject({
    /** The AI SDK package. Default: that of the known provider, else `@ai-sdk/openai-compatible`. */
    npm: z.string().min(1).optional(),
    name: text,
    /** Environment variables that may hold the key, first found wins. */
    env: z.array(z.string()).optional(),
    options: z
      .looseObject({
        baseURL: text,
        apiKey: text,
        headers: z.record(z.string(), z.string()).optional(),
        /** Milliseconds for a whole answer; false: no limit. Default: none. */
        timeout: z.union([milliseconds, z.literal(false)]).optional(),
        /** Milliseconds until the answer begins. */
        headerTimeout: patience,
        /** Milliseconds of silence within an answer. */
        chunkTimeout: patience,
      })
      .optional(),
    /** For all its models that do not say otherwise. */
    toolCalling,
    models: z.record(z.string(), ModelConfig).optional(),
  }),
)
export type ProviderConfig = z.infer<typeof ProviderConfig>
