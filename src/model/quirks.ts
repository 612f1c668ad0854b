import type { SharedV4ProviderOptions } from "@ai-sdk/provider"
import { type CacheMark, markInText } from "./cache-marks.ts"
import type { ModelInfo, ProviderFamily } from "./model.ts"
import {
  asObject,
  bareReferences,
  constAsEnum,
  honestRequired,
  inlineReferences,
  type SchemaTransform,
  singleTypes,
  textEnums,
  tuplesAsLists,
  typedEnums,
  typedItems,
  typesInBranches,
  withoutTopUnion,
} from "./schema-transforms.ts"

/** Package option or header that carries a session's cache key. */
export type CacheKey = { option: string } | { header: string }

/** Special requirements of a model or its server. */
interface Quirks {
  /** Transforms for tool schemas, in order. They run in addition to the provider package's transforms. */
  schema?: readonly SchemaTransform[]
  /** Converts a call id to an id that the server accepts. Equal ids produce equal results. */
  callID?(id: string): string
  /** Text of the assistant message to insert between tool results and a user message. */
  afterResults?: string
  /** Cache mark for the first system prompts and the final messages. */
  cacheMark?: CacheMark
  /** Option or header for a session's cache key. */
  cacheKey?: CacheKey
  /**
   * Provider options for assistant messages without reasoning. Some servers require reasoning in messages with calls.
   */
  withoutReasoning?: SharedV4ProviderOptions
  /** Recommended temperature, for agents that do not set one. */
  temperature?: number
}

interface Row extends Quirks {
  family?: ProviderFamily
  /** Matches the model id. A row applies only if all its conditions match. */
  id?: RegExp
  /** Matches the package name or the host name. */
  server?: RegExp
}

const qwen = /qwen|qwq|qvq/i

const ephemeral = { type: "ephemeral" }

const openRouterMark = { openrouter: { cacheControl: ephemeral } }

/**
 * Marks for Claude. Each package reads its own key. Compatible servers receive the mark next to the text, where LiteLLM
 * expects it.
 */
const claudeMark: CacheMark = {
  part: {
    anthropic: { cacheControl: ephemeral },
    bedrock: { cachePoint: { type: "default" } },
    ...openRouterMark,
    openaiCompatible: { cache_control: ephemeral },
  },
}

/** Mark for compatible servers that expect the mark in the message's text. */
const textMark: CacheMark = { part: { openaiCompatible: { [markInText]: ephemeral } } }

/**
 * Marks for the Alibaba package. If a message has several parts, the package reads the part's mark. Otherwise, it reads
 * the message's mark.
 */
const alibabaMark: CacheMark = {
  part: { alibaba: { cacheControl: ephemeral } },
  message: { alibaba: { cacheControl: ephemeral } },
}

/** Later matching rows override earlier ones, key by key. The temperatures are from the model cards. */
const table: readonly Row[] = [
  {
    family: "openai",
    schema: [withoutTopUnion, constAsEnum, typedItems, asObject],
    cacheKey: { option: "promptCacheKey" },
  },
  { server: /^@ai-sdk\/(?:azure|mistral)$/, cacheKey: { option: "promptCacheKey" } },
  // The package copies unknown options to the request body.
  {
    family: "openai-compatible",
    server: /^api\.mistral\.ai$|(?:^|\.)openai\.azure\.com$/,
    cacheKey: { option: "prompt_cache_key" },
  },
  { server: /^@ai-sdk\/xai$|^api\.x\.ai$/, cacheKey: { header: "x-grok-conv-id" } },
  { id: /\bgpt-|\bo[134]\b/i, schema: [withoutTopUnion, constAsEnum, typedItems, asObject] },
  ...[{ family: "anthropic" } as const, { id: /claude/i }].map((model) => ({
    ...model,
    schema: [withoutTopUnion, asObject],
    callID: plainID,
    cacheMark: claudeMark,
  })),
  { id: qwen, server: /^@openrouter\//, cacheMark: { part: openRouterMark } },
  { id: qwen, server: /^@ai-sdk\/alibaba$/, cacheMark: alibabaMark },
  ...[
    { id: /claude/i, server: /(?:^|\.)openrouter\.ai$/ },
    { id: qwen, server: /(?:^|\.)(?:openrouter\.ai|aliyuncs\.com)$/ },
  ].map((model) => ({ ...model, family: "openai-compatible" as const, cacheMark: textMark })),
  { id: /deepseek/i, withoutReasoning: { openaiCompatible: { reasoning_content: "" } } },
  {
    id: /gemini/i,
    schema: [
      inlineReferences,
      constAsEnum,
      textEnums,
      singleTypes,
      tuplesAsLists,
      typedItems,
      honestRequired,
      asObject,
    ],
  },
  // Google's own API supports more of JSON Schema than compatible servers do.
  { family: "google", schema: [constAsEnum, typedItems, honestRequired, asObject] },
  {
    id: /kimi|moonshot/i,
    schema: [tuplesAsLists, bareReferences, typedEnums, typesInBranches, withoutTopUnion, asObject],
  },
  { id: /kimi-k2/i, temperature: 0.6 },
  { id: /kimi-k2.*thinking/i, temperature: 1 },
  {
    id: /mistral|mixtral|ministral|magistral|codestral|devstral|pixtral/i,
    callID: nineCharacters,
    afterResults: "Done.",
  },
  { id: /devstral/i, temperature: 0.15 },
  { id: /qwen3-coder/i, temperature: 0.7 },
  { id: /glm-4\.[67]/i, temperature: 1 },
  { id: /minimax-m2/i, temperature: 1 },
]

const known = new WeakMap<ModelInfo, Quirks>()

const usual: Quirks = { schema: [asObject] }

/** Returns a model's quirks. */
export function quirksOf(info: ModelInfo | undefined): Quirks {
  if (info === undefined) return usual
  const found = known.get(info) ?? merged(table.filter((row) => fits(row, info)))
  known.set(info, found)
  return found
}

function merged(rows: readonly Row[]): Quirks {
  const { family: _, id: _id, server: _server, ...quirks }: Row = Object.assign({}, usual, ...rows)
  return quirks
}

function fits({ family, id, server }: Row, info: ModelInfo): boolean {
  if (family !== undefined && family !== info.family) return false
  if (id !== undefined && !id.test(info.ref.modelID)) return false
  return (
    server === undefined ||
    [info.server?.package, info.server?.host].some((name) => name && server.test(name))
  )
}

function plainID(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_-]/g, "_")
}

const nine = 9

/**
 * Returns an id of exactly nine letters and digits, as Mistral requires. Hashes ids of any other form, so that they
 * stay distinct.
 */
function nineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id
  // Two 32-bit FNV-1a hashes, of the id and of the reversed id.
  const text = `${hash(id)}${hash([...id].reverse().join(""))}`
  return text.slice(0, nine).padStart(nine, "0")
}

function hash(text: string): string {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0
  return value.toString(36).padStart(7, "0").slice(-5)
}
