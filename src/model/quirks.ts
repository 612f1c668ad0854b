import type { SharedV4ProviderOptions } from "@ai-sdk/provider"
import { type CacheMark, markInText } from "./cache-marks.ts"
import type { ModelInfo, ProviderFamily } from "./model.ts"
import {
  asObject,
  bareReferences,
  constAsEnum,
  honestRequired,
  type SchemaTransform,
  singleTypes,
  textEnums,
  tuplesAsLists,
  typedItems,
  withoutTopUnion,
} from "./schema-transforms.ts"

/** How a server is told which session a request belongs to. An option is one of the provider's package. */
export type CacheKey = { option: string } | { header: string }

/** What a model or its server wants otherwise than others. */
interface Quirks {
  /** Of a tool's schema, beyond what the provider's package does itself. In order. */
  schema?: readonly SchemaTransform[]
  /** The id of a call as the server takes it. The same for the same id. */
  callID?(id: string): string
  /** Said in the model's place between the results of its calls and a message of the person's. */
  afterResults?: string
  /** Goes with the first system prompts and the last messages, so that the server keeps what it computed up to there. */
  cacheMark?: CacheMark
  /** Where the name goes by which requests of one session find what the server kept of the last. */
  cacheKey?: CacheKey
  /** Goes with what the model said, where its thoughts are not known: the server refuses calls without any. */
  withoutThoughts?: SharedV4ProviderOptions
  /** What the model's makers recommend, for an agent that says nothing of it. */
  temperature?: number
}

interface Row extends Quirks {
  family?: ProviderFamily
  /** Of the model's id, on whatever server: many are reached through compatible ones. */
  id?: RegExp
  /** Of the name of the package or of the host. */
  server?: RegExp
}

const qwen = /qwen|qwq|qvq/i

const ephemeral = { type: "ephemeral" }

const openRouterMark = { openrouter: { cacheControl: ephemeral } }

/** Each package reads its own. For compatible servers it stands beside the text, as LiteLLM hands it on. */
const claudeMark: CacheMark = {
  part: {
    anthropic: { cacheControl: ephemeral },
    bedrock: { cachePoint: { type: "default" } },
    ...openRouterMark,
    openaiCompatible: { cache_control: ephemeral },
  },
}

/** For compatible servers that look for it in the text. */
const textMark: CacheMark = { part: { openaiCompatible: { [markInText]: ephemeral } } }

/** This package looks at the part where a message has several, else at the message. */
const alibabaMark: CacheMark = {
  part: { alibaba: { cacheControl: ephemeral } },
  message: { alibaba: { cacheControl: ephemeral } },
}

/** A later row that fits goes before an earlier one, key by key. The temperatures are those of the models' cards. */
const table: readonly Row[] = [
  {
    family: "openai",
    schema: [withoutTopUnion, constAsEnum, typedItems, asObject],
    cacheKey: { option: "promptCacheKey" },
  },
  { server: /^@ai-sdk\/(?:azure|mistral)$/, cacheKey: { option: "promptCacheKey" } },
  // What the package does not know goes into the body as it is.
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
  { id: /deepseek/i, withoutThoughts: { openaiCompatible: { reasoning_content: "" } } },
  {
    id: /gemini/i,
    schema: [constAsEnum, textEnums, singleTypes, tuplesAsLists, typedItems, honestRequired, asObject],
  },
  // Its own interface takes more of JSON Schema than what others make of it.
  { family: "google", schema: [constAsEnum, typedItems, honestRequired, asObject] },
  { id: /kimi|moonshot/i, schema: [tuplesAsLists, bareReferences, asObject] },
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

/** All that the table says of a model. */
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

/** Mistral takes just nine letters and digits. What has others becomes a hash, so that two ids stay two. */
function nineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id
  // Two 32-bit FNV-1a hashes, from both ends.
  const text = `${hash(id)}${hash([...id].reverse().join(""))}`
  return text.slice(0, nine).padStart(nine, "0")
}

function hash(text: string): string {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0
  return value.toString(36).padStart(7, "0").slice(-5)
}
