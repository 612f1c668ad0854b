import type { ModelConfig, ModelInfo, ModelServer, ProviderConfig, ProviderFamily } from "./model.ts"

/** A provider that is known without any config. */
interface ProviderRow {
  id: string
  name: string
  npm: string
  baseURL: string
  /** Environment variable that moves `baseURL`. */
  baseURLVariable?: string
  /** Environment variables that may hold the key, first found wins. Empty: no key needed. */
  keyVariables: readonly string[]
  /** A model server that people run on their own machine listens on this port of 127.0.0.1. */
  port?: number
}

/** For a provider of which neither the table nor the config says by which package it is asked. */
export const defaultPackage = "@ai-sdk/openai-compatible"

/** The known providers. Any model id is taken for them: the server knows which it has. */
export const providerTable: readonly ProviderRow[] = [
  {
    id: "openai",
    name: "OpenAI",
    npm: "@ai-sdk/openai",
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

/** The packages that ship with Tackle. To name any other runs what lies under that name. */
export const shippedPackages: ReadonlySet<string> = new Set(providerTable.map(({ npm }) => npm))

/** The row of a known provider. */
function findProvider(id: string): ProviderRow | undefined {
  return providerTable.find((row) => row.id === id)
}

/** What a person does to give a provider its key: the end of an error's text. */
export function keyRemedy(providerID: string, extraVariables: readonly string[] = []): string {
  const variables = [...extraVariables, ...(findProvider(providerID)?.keyVariables ?? [])]
  const config = `provider.${providerID}.options.apiKey in the config (for instance "{env:MY_KEY}")`
  if (variables.length === 0) return `Set ${config}.`
  return `Set ${variables.join(" or ")} in the environment, or ${config}.`
}

/** Whose wire format a package speaks. */
export function familyOf(npm: string): ProviderFamily {
  const families: Record<string, ProviderFamily> = {
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "google",
    [defaultPackage]: "openai-compatible",
  }
  return families[npm] ?? "other"
}

/**
 * The key of `providerOptions` that a package listens to. The one for compatible servers takes the provider's id; the
 * AI SDK's own take their name, but for Azure, which is OpenAI's in another place.
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

/** A provider as the table and the config together describe it. */
export interface Provider {
  id: string
  npm: string
  row: ProviderRow | undefined
  config: ProviderConfig
}

/** Undefined: neither the table nor the config knows it. */
export function findConfigured(
  config: Readonly<Record<string, ProviderConfig>>,
  id: string,
): Provider | undefined {
  const row = findProvider(id)
  const written = own(config, id)
  if (row === undefined && written === undefined) return undefined
  return { id, row, config: written ?? {}, npm: written?.npm ?? row?.npm ?? defaultPackage }
}

/** Names come from people: `constructor` is no provider. */
export function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** What is known of a model. Undefined: the provider lists its models, and this is none of them. */
export function describeModel(provider: Provider | undefined, modelID: string): ModelInfo | undefined {
  if (provider === undefined) return undefined
  const models = provider.config.models ?? {}
  const config = own(models, modelID)
  const listed = provider.row === undefined && Object.keys(models).length > 0
  if (listed && config === undefined) return undefined
  const family = familyOf(provider.npm)
  const info: ModelInfo = {
    ref: { providerID: provider.id, modelID },
    name: config?.name ?? modelID,
    toolCall: config?.tool_call ?? true,
    limit: { ...config?.limit },
    // Servers that merely speak the format often take no files, and then refuse the whole request.
    attachment: config?.attachment ?? (family !== "openai-compatible" && family !== "other"),
    structuredOutput: config?.structured_output ?? family === "openai",
    family,
    server: describeServer(provider),
  }
  const cost = readCost(config)
  if (cost) info.cost = cost
  const { headerTimeout, chunkTimeout } = provider.config.options ?? {}
  if (headerTimeout !== undefined || chunkTimeout !== undefined) {
    info.timeouts = {
      ...(headerTimeout !== undefined && { firstByteMs: headerTimeout }),
      ...(chunkTimeout !== undefined && { idleMs: chunkTimeout }),
    }
  }
  return info
}

function describeServer({ id, npm, row, config }: Provider): ModelServer {
  const address = config.options?.baseURL || row?.baseURL || ""
  const host = URL.canParse(address) ? new URL(address).hostname : ""
  return { package: npm, host, optionsKey: optionsKeyOf(npm, id) }
}

/** The nearest of the config's words on tools: the model's own, then the provider's. */
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
  return {
    input,
    output,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}
