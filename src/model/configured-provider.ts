import type { ModelConfig, ModelInfo, ModelServer, ProviderConfig } from "./model.ts"
import { defaultPackage, familyOf, findProvider, optionsKeyOf, type ProviderRow } from "./provider-table.ts"

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
