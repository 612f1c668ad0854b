import { own } from "../util/json.ts"
import type {
  LanguageModel,
  ModelConfig,
  ModelInfo,
  ModelServer,
  ProviderConfig,
  ProviderFamily,
} from "./model.ts"

/** A known provider, which needs no config. */
interface ProviderRow {
  id: string
  name: string
  npm: string
  baseURL: string
  /** Environment variable that overrides `baseURL`. */
  baseURLVariable?: string
  /** Environment variables for the key. The first one that is set is used. Empty if no key is needed. */
  keyVariables: readonly string[]
  /** Port of a local model server on 127.0.0.1. */
  port?: number
}

/** Package for providers that do not specify one. */
export const defaultPackage = "@ai-sdk/openai-compatible"

/** Package for OpenAI's own APIs. */
export const openaiPackage = "@ai-sdk/openai"

/** The known providers. They accept any model id; the server checks the id. */
export const providerTable: readonly ProviderRow[] = [
  {
    id: "openai",
    name: "OpenAI",
    npm: openaiPackage,
    baseURL: "https://api.openai.com/v1",
    baseURLVariable: "OPENAI_BASE_URL",
    keyVariables: ["OPENAI_API_KEY"],
  },
  {
    id: "anthropic",
    name: "Anthropic",
    npm: "@ai-sdk/anthropic",
    baseURL: "https://api.anthropic.com/v1",
    baseURLVariable: "ANTHROPIC_BASE_URL",
    keyVariables: ["ANTHROPIC_API_KEY"],
  },
  {
    id: "google",
    name: "Google",
    npm: "@ai-sdk/google",
    baseURL: "https://generativelanguage.googleapis.com/v1beta",
    keyVariables: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
  },
  local("ollama", "Ollama", 11434),
  local("lmstudio", "LM Studio", 1234),
  local("llamacpp", "llama.cpp", 8080),
  local("vllm", "vLLM", 8000),
]

/** Packages that ship with Tackle. Any other package is code that the user installed. */
export const shippedPackages: ReadonlySet<string> = new Set(providerTable.map(({ npm }) => npm))

/** Returns the table row of a known provider. */
function findProvider(id: string): ProviderRow | undefined {
  return providerTable.find((row) => row.id === id)
}

/** Returns a sentence for error messages that says how to configure a key. */
export function keyRemedy(providerID: string, extraVariables: readonly string[] = []): string {
  const variables = [...extraVariables, ...(findProvider(providerID)?.keyVariables ?? [])]
  const config = `provider.${providerID}.options.apiKey in the config (for example "{env:MY_KEY}")`
  const command = `run \`tackle auth login ${providerID}\``
  if (variables.length === 0) return `Set ${config}, or ${command}.`
  return `Set ${variables.join(" or ")} in the environment, set ${config}, or ${command}.`
}

/** Returns the wire format that a package uses. */
export function familyOf(npm: string): ProviderFamily {
  const families: Record<string, ProviderFamily> = {
    [openaiPackage]: "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "google",
    [defaultPackage]: "openai-compatible",
  }
  return own(families, npm) ?? "other"
}

/**
 * Returns the key of `providerOptions` that a package reads. For AI SDK packages, the key is the package name in camel
 * case and without its scope. For a package `@scope/ai-sdk-provider`, it is the scope. For other packages and for
 * compatible servers, it is the provider id up to its first period. Azure uses OpenAI's key.
 */
export function optionsKeyOf(npm: string, providerID: string): string {
  if (npm === "@ai-sdk/azure") return "openai"
  const [, scope = "", name = ""] = /^@([^/]+)\/(.+)$/.exec(npm) ?? []
  if (npm !== defaultPackage && scope === "ai-sdk")
    return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  if (name === "ai-sdk-provider") return scope
  return providerID.split(".")[0] ?? providerID
}

function local(id: string, name: string, port: number): ProviderRow {
  return { id, name, npm: defaultPackage, baseURL: `http://127.0.0.1:${port}/v1`, keyVariables: [], port }
}

/** A provider with its table row and its config. */
export interface Provider {
  id: string
  npm: string
  row: ProviderRow | undefined
  config: ProviderConfig
}

/** Returns the provider with this id, or undefined if it is in neither the table nor the config. */
export function findConfigured(
  config: Readonly<Record<string, ProviderConfig>>,
  id: string,
): Provider | undefined {
  const row = findProvider(id)
  const written = own(config, id)
  if (row === undefined && written === undefined) return undefined
  return { id, row, config: written ?? {}, npm: written?.npm ?? row?.npm ?? defaultPackage }
}

/**
 * Returns a model's properties, or undefined if the provider is unknown, or if it is not in the table and its config
 * lists only other models.
 */
export function describeModel(provider: Provider | undefined, modelID: string): ModelInfo | undefined {
  if (provider === undefined) return undefined
  const models = provider.config.models ?? {}
  const listed = provider.row === undefined && Object.keys(models).length > 0
  if (listed && own(models, modelID) === undefined) return undefined
  return infoOf(provider, modelID)
}

function infoOf(provider: Provider, modelID: string): ModelInfo {
  const config = own(provider.config.models ?? {}, modelID)
  const family = familyOf(provider.npm)
  const info: ModelInfo = {
    ref: { providerID: provider.id, modelID },
    name: config?.name ?? modelID,
    toolCall: config?.tool_call ?? true,
    limit: { ...config?.limit },
    // Many compatible servers do not accept files and reject any request that contains one.
    attachment: config?.attachment ?? (family !== "openai-compatible" && family !== "other"),
    structuredOutput: config?.structured_output ?? family === "openai",
    family,
    server: describeServer(provider),
  }
  const cost = readCost(config)
  if (cost) info.cost = cost
  const { headerTimeout, chunkTimeout } = provider.config.options ?? {}
  if (headerTimeout !== undefined || chunkTimeout !== undefined) {
    info.timeouts = { firstByteMs: headerTimeout, idleMs: chunkTimeout }
  }
  return info
}

/**
 * Describes a model object, using its provider's config. The provider id is the first word of the object's `provider`,
 * such as `openai` in `openai.responses`. The model accepts files if its package or the config says so. A schema for
 * the answer is used only if the config says so.
 */
export async function describeLanguage(
  { provider, modelId, supportedUrls }: LanguageModel,
  configured: Readonly<Record<string, ProviderConfig>>,
): Promise<ModelInfo> {
  const id = provider.split(".", 1)[0] ?? provider
  const config = own(configured, id) ?? {}
  const { attachment, structured_output: structuredOutput } = own(config.models ?? {}, modelId) ?? {}
  // A server that is not in the table may use a name from the table. In this case, the address in the table does not
  // apply.
  const info = infoOf({ id, npm: packageOf(id), row: undefined, config }, modelId)
  const takesFiles = Object.keys(await supportedUrls).some((type) => /^(?:image\/|\*)/.test(type))
  return {
    ...info,
    ref: { providerID: provider, modelID: modelId },
    attachment: attachment ?? (info.attachment || takesFiles),
    structuredOutput,
  }
}

/** Returns the package of a model object, by the first word of its `provider`. */
function packageOf(id: string): string {
  if (id.startsWith("azure")) return "@ai-sdk/azure"
  return id === "openrouter" ? "@openrouter/ai-sdk-provider" : `@ai-sdk/${id}`
}

function describeServer({ id, npm, row, config }: Provider): ModelServer {
  const address = config.options?.baseURL || row?.baseURL || ""
  const host = URL.canParse(address) ? new URL(address).hostname : ""
  return { package: npm, host, optionsKey: optionsKeyOf(npm, id) }
}

/**
 * Returns the tool policy that is configured for the model, or else for its provider (default: `auto`). If the model's
 * `tool_call` is false, `synthetic` replaces the provider's `native` or `auto`. Also returns the config key that sets
 * the policy, and the configured dialect.
 */
export function toolPolicyOf({ id, config }: Pick<Provider, "id" | "config">, modelID: string) {
  const model = own(config.models ?? {}, modelID)
  const inherited = config.toolCalling ?? "auto"
  const takesNone = model?.tool_call === false && (inherited === "native" || inherited === "auto")
  const isInherited = model?.toolCalling === undefined && config.toolCalling !== undefined
  return {
    policy: model?.toolCalling ?? (takesNone ? "synthetic" : inherited),
    key: `provider.${id}.${isInherited ? "" : `models.${modelID}.`}toolCalling`,
    dialect: model?.toolDialect,
  }
}

function readCost(config: ModelConfig | undefined): ModelInfo["cost"] {
  if (config?.cost === undefined) return undefined
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = config.cost
  return { input, output, cacheRead, cacheWrite }
}
