import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { UsageError } from "../util/errors.ts"
import { isStrictSchema } from "./answer-schema.ts"
import type { Credentials } from "./credentials.ts"
import { ModelNotFoundError } from "./errors.ts"
import { type Model, type ModelConfig, type ModelInfo, modelName, type ProviderConfig } from "./model.ts"
import { createOfflineModel, offlineInfo } from "./offline.ts"
import { type ModelFactory, openPackage } from "./packages.ts"
import {
  defaultPackage,
  familyOf,
  findProvider,
  keyRemedy,
  type ProviderRow,
  providerTable,
} from "./provider-table.ts"
import { createToolMemory, type ToolMemory } from "./tool-memory.ts"
import { withToolPolicy } from "./tool-policy.ts"

/** Every model that can be named. */
export interface Models {
  /** Throws `ModelNotFoundError` with near names. Loads and asks nothing. */
  get(ref: ModelRef): Promise<Model>
  /** The models of the config and the built-in one. Known providers have more: any id is taken for them. */
  list(): ModelInfo[]
  /** Ids of the providers whose models can be named, the stand-in's left out. */
  providers(): string[]
}

export interface ModelsDependencies {
  /** `provider` of the config. */
  config: Readonly<Record<string, ProviderConfig>>
  credentials: Pick<Credentials, "key">
  environment: Readonly<Record<string, string | undefined>>
  /** What a plugin gives the provider's package for whoever is signed in. Undefined: nothing. */
  signedIn?: (provider: {
    id: string
    options: Readonly<Record<string, unknown>>
  }) => Promise<Record<string, unknown> | undefined>
  /** Which servers refused tools. Default: one that ends with these models. */
  toolMemory?: ToolMemory
  /** Default: `httpFetch` of `http-fetch.ts`. */
  fetch?: typeof fetch
  /** Stands between the packages and what asks for them, be that `fetch` or what a plugin gives: nothing goes past it. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /** Whole providers from elsewhere, by id. They go before the config's. */
  extra?: Readonly<Record<string, (modelID: string) => Model>>
  /** How a package that does not ship with Tackle is imported. Default: `import(name)`. */
  importPackage?: (name: string) => Promise<unknown>
}

/** A provider as the table and the config together describe it. */
interface Provider {
  id: string
  npm: string
  row: ProviderRow | undefined
  config: ProviderConfig
}

/** The models of the table, the config and `extra`. Nothing is loaded before a model's `language()` is called. */
export function createModels(dependencies: ModelsDependencies): Models {
  const { config, extra = {}, toolMemory = createToolMemory() } = dependencies
  const made = new Map<string, Model>()

  function knownNames(): string[] {
    return [...list().map(({ ref }) => modelName(ref)), ...providers().map((id) => `${id}/…`)]
  }

  function providers(): string[] {
    const known = providerTable.map(({ id }) => id)
    return [...new Set([...known, ...Object.keys(config), ...Object.keys(extra)])]
  }

  function list(): ModelInfo[] {
    const configured = Object.keys(config).flatMap((providerID) =>
      Object.keys(config[providerID]?.models ?? {}).map((modelID) =>
        describe(findConfigured(config, providerID), modelID),
      ),
    )
    return [...configured.filter((info) => info !== undefined), offlineInfo]
  }

  function make(ref: ModelRef): Model {
    const fromExtra = own(extra, ref.providerID)
    if (fromExtra) return fromExtra(ref.modelID)
    if (modelName(ref) === modelName(offlineInfo.ref)) return createOfflineModel()
    const provider = findConfigured(config, ref.providerID)
    const info = describe(provider, ref.modelID)
    if (provider === undefined || info === undefined) throw new ModelNotFoundError(ref, knownNames())
    let language: Promise<LanguageModelV4> | undefined
    return {
      info,
      language() {
        // A failure is not kept: the person may have mended it since.
        language ??= open(provider, ref.modelID, dependencies)
          .then((opened) =>
            withToolPolicy(opened, { ref, memory: toolMemory, ...toolPolicyOf(provider, ref.modelID) }),
          )
          .catch((error: unknown) => {
            language = undefined
            throw error
          })
        return language
      },
    }
  }

  return {
    list,
    providers,
    async get(ref) {
      const name = modelName(ref)
      const model = made.get(name) ?? make(ref)
      made.set(name, model)
      return model
    },
  }
}

function findConfigured(config: ModelsDependencies["config"], id: string): Provider | undefined {
  const row = findProvider(id)
  const written = own(config, id)
  if (row === undefined && written === undefined) return undefined
  return { id, row, config: written ?? {}, npm: written?.npm ?? row?.npm ?? defaultPackage }
}

/** Names come from people: `constructor` is no provider. */
function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Undefined: the provider lists its models, and this is none of them. */
function describe(provider: Provider | undefined, modelID: string): ModelInfo | undefined {
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

async function open(
  provider: Provider,
  modelID: string,
  dependencies: ModelsDependencies,
): Promise<LanguageModelV4> {
  const { id, row, npm, config } = provider
  const { environment } = dependencies
  const {
    apiKey: ownKey,
    baseURL: ownURL,
    headers,
    timeout,
    headerTimeout: _header,
    chunkTimeout: _chunk,
    ...rest
  } = config.options ?? {}
  const given = await dependencies.signedIn?.({ id, options: config.options ?? {} })
  const ask = given && isFetch(given.fetch) ? given.fetch : await plainFetch(dependencies)

  const variables = [...(config.env ?? []), ...(row?.keyVariables ?? [])]
  const apiKey = ownKey || (await dependencies.credentials.key(id, variables))
  const needsKey = row !== undefined && row.keyVariables.length > 0
  if (needsKey && apiKey === undefined && given === undefined) throw noKey(provider)

  const moved = row?.baseURLVariable === undefined ? undefined : environment[row.baseURLVariable]
  const factory: ModelFactory = await openPackage(
    npm,
    {
      ...rest,
      name: id,
      apiKey,
      baseURL: ownURL || moved || row?.baseURL,
      headers,
      ...(own(config.models ?? {}, modelID)?.structured_output === true && {
        supportsStructuredOutputs: true,
      }),
      ...given,
      fetch: dependencies.aroundFetch?.(ask) ?? ask,
    },
    dependencies.importPackage ?? ((name) => import(name)),
  )
  const model = own(config.models ?? {}, modelID)
  return asNamed(factory(model?.id ?? modelID), {
    ref: { providerID: id, modelID },
    optionsKey: optionsKey(provider),
    options: model?.options,
    timeoutMs: timeout === false ? undefined : timeout,
  })
}

function isFetch(value: unknown): value is typeof fetch {
  return typeof value === "function"
}

/** Loaded when it is needed: not every engine asks by it. */
async function plainFetch({ fetch }: ModelsDependencies): Promise<typeof globalThis.fetch> {
  return fetch ?? (await import("./http-fetch.ts")).httpFetch
}

/** The key of `providerOptions` that the package listens to. */
function optionsKey(provider: Provider): string {
  const family = familyOf(provider.npm)
  return family === "openai-compatible" || family === "other" ? (provider.id.split(".")[0] ?? "") : family
}

/** The model under our names, which errors then carry, with what the config wants in every request. */
function asNamed(
  inner: LanguageModelV4,
  wishes: {
    ref: ModelRef
    optionsKey: string
    options: ModelConfig["options"]
    timeoutMs: number | undefined
  },
): LanguageModelV4 {
  const { ref, optionsKey: key, options, timeoutMs } = wishes
  function withWishes(call: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
    const changed = { ...call }
    const format = call.responseFormat?.type === "json" ? call.responseFormat.schema : undefined
    const strict = format === undefined ? {} : { strictJsonSchema: isStrictSchema(format) }
    if (options !== undefined || format !== undefined)
      changed.providerOptions = { [key]: { ...strict, ...options }, ...call.providerOptions }
    if (timeoutMs !== undefined) {
      const limit = AbortSignal.timeout(timeoutMs)
      changed.abortSignal = call.abortSignal ? AbortSignal.any([call.abortSignal, limit]) : limit
    }
    return changed
  }
  return {
    specificationVersion: "v4",
    provider: ref.providerID,
    modelId: ref.modelID,
    get supportedUrls() {
      return inner.supportedUrls
    },
    doGenerate: (call) => inner.doGenerate(withWishes(call)),
    doStream: (call) => inner.doStream(withWishes(call)),
  }
}

function noKey(provider: Provider): UsageError {
  const name = provider.config.name ?? provider.row?.name ?? provider.id
  const remedy = keyRemedy(provider.id, provider.config.env)
  return new UsageError(`${name} needs a key, and there is none. ${remedy}`, undefined, "model.no-key")
}
