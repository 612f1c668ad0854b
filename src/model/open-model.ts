import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { errorMessage, systemCode, UsageError } from "../util/errors.ts"
import { isRecord, own } from "../util/json.ts"
import { longestTimerMs } from "../util/time.ts"
import { guardAnswers } from "./answer-guard.ts"
import { isStrictSchema } from "./answer-schema.ts"
import { marksIntoTexts } from "./cache-marks.ts"
import { alwaysStreamed, createChatBodyCache } from "./chat-completions.ts"
import type { Credentials } from "./credentials.ts"
import { ProviderError } from "./errors.ts"
import { type ModelConfig, modelName, type ProviderConfig } from "./model.ts"
import { defaultPackage, keyRemedy, openaiPackage, optionsKeyOf, type Provider } from "./provider-table.ts"

/** Dependencies for opening a model. */
export interface OpeningDependencies {
  credentials: Pick<Credentials, "key">
  environment: Readonly<Record<string, string | undefined>>
  /**
   * Returns a plugin's package settings for a provider that the user has signed in to, or undefined if no plugin
   * provides settings.
   */
  signedIn?: (provider: {
    id: string
    options: Readonly<Record<string, unknown>>
  }) => Promise<Record<string, unknown> | undefined>
  /** Sends the requests, unless a plugin's settings contain a `fetch`. Default: `httpFetch` of `http-fetch.ts`. */
  fetch?: typeof fetch
  /** Wraps every `fetch`, including a plugin's. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /** Whether each stream event is passed on unchanged. By default, texts that arrive together are joined. */
  keepEvents?: boolean
  /** Imports a package that does not ship with Tackle. Default: `import(name)`. */
  importPackage?: (name: string) => Promise<unknown>
}

/**
 * Maximum length in bytes of an event whose text is joined. Joining a longer event gains little, and an event with
 * millions of characters would overflow the stack of the regular expression that finds its text.
 */
const joinedLength = 4_096

/**
 * Loads the provider package and creates the model. Throws `UsageError` if the key is missing or the package cannot be
 * used.
 */
export async function openModel(
  provider: Provider,
  modelID: string,
  dependencies: OpeningDependencies,
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
  const replaced = given && isFetch(given.fetch) ? given.fetch : dependencies.fetch
  const ask = replaced ?? (await import("./http-fetch.ts")).httpFetch

  const variables = [...(config.env ?? []), ...(row?.keyVariables ?? [])]
  const apiKey = ownKey || (await dependencies.credentials.key(id, variables))
  const needsKey = row !== undefined && row.keyVariables.length > 0
  if (needsKey && apiKey === undefined && given === undefined) throw noKey(provider)

  const moved = row?.baseURLVariable === undefined ? undefined : environment[row.baseURLVariable]
  const factory: ModelFactory = await openPackage(
    { npm, api: config.api },
    {
      ...rest,
      name: id,
      apiKey,
      baseURL: ownURL || moved || row?.baseURL,
      headers,
      supportsStructuredOutputs: own(config.models ?? {}, modelID)?.structured_output || undefined,
      ...given,
      fetch: guardAnswers(dependencies.aroundFetch?.(ask) ?? ask, {
        joinedLength: dependencies.keepEvents ? 0 : joinedLength,
      }),
    },
    {
      importPackage: dependencies.importPackage ?? ((name) => import(name)),
      // A `fetch` from a plugin or an application may read the body as text.
      inPieces: replaced === undefined && dependencies.aroundFetch === undefined,
    },
  )
  const model = own(config.models ?? {}, modelID)
  return asNamed(factory(model?.id ?? modelID), {
    ref: { providerID: id, modelID },
    optionsKey: optionsKeyOf(npm, id),
    options: model?.options,
    timeoutMs: timeout === false ? undefined : timeout,
  })
}

function isFetch(value: unknown): value is typeof fetch {
  return typeof value === "function"
}

/** Renames the model for error messages and adds the configured options and timeout to every request. */
function asNamed(
  inner: LanguageModelV4,
  settings: {
    ref: ModelRef
    optionsKey: string
    options: ModelConfig["options"]
    timeoutMs: number | undefined
  },
): LanguageModelV4 {
  const { ref, optionsKey: key, options, timeoutMs } = settings
  function withSettings(call: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
    const changed = { ...call }
    const format = call.responseFormat?.type === "json" ? call.responseFormat.schema : undefined
    const strict = format === undefined ? {} : { strictJsonSchema: isStrictSchema(format) }
    if (options !== undefined || format !== undefined) {
      const asked = call.providerOptions
      changed.providerOptions = { ...asked, [key]: { ...strict, ...options, ...asked?.[key] } }
    }
    if (timeoutMs !== undefined) {
      const limit = timeLimit(ref, timeoutMs)
      changed.abortSignal = call.abortSignal ? AbortSignal.any([call.abortSignal, limit]) : limit
    }
    return changed
  }
  return changingCalls(inner, withSettings, { provider: ref.providerID, modelId: ref.modelID })
}

/** Returns a signal that aborts after `ms` milliseconds with an error that names the config key for the limit. */
function timeLimit(ref: ModelRef, ms: number): AbortSignal {
  const controller = new AbortController()
  const expire = () =>
    controller.abort(
      new ProviderError(
        `${modelName(ref)}: the answer was not complete after ${ms / 1000} s. If the server needs more time, increase provider.${ref.providerID}.options.timeout in the config.`,
        { kind: "timeout", retryable: true },
      ),
    )
  setTimeout(expire, Math.min(ms, longestTimerMs)).unref()
  return controller.signal
}

/** Wraps a model so that each call uses the options that `change` returns. */
function changingCalls(
  inner: LanguageModelV4,
  change: (call: LanguageModelV4CallOptions) => LanguageModelV4CallOptions,
  { provider, modelId }: Pick<LanguageModelV4, "provider" | "modelId"> = inner,
): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider,
    modelId,
    get supportedUrls() {
      return inner.supportedUrls
    },
    doGenerate: (call) => inner.doGenerate(change(call)),
    doStream: (call) => inner.doStream(change(call)),
  }
}

function noKey(provider: Provider): UsageError {
  const name = provider.config.name ?? provider.row?.name ?? provider.id
  const remedy = keyRemedy(provider.id, provider.config.env)
  return new UsageError(`${name} needs an API key. ${remedy}`, undefined, "model.no-key")
}

/** Settings for a provider package. Other keys are specific to the package. */
interface ProviderSettings {
  name: string
  baseURL: string | undefined
  apiKey: string | undefined
  headers: Record<string, string> | undefined
  fetch: typeof fetch | undefined
  [option: string]: unknown
}

/** Creates the model with this id. */
type ModelFactory = (modelID: string) => LanguageModelV4

/**
 * Returns a package's model factory. Shipped packages are imported by literal names, so that the bundle loads each of
 * them on first use. Other packages are loaded through `importPackage`. `inPieces` is true if `fetch` accepts an array
 * of `Uint8Array` as the body. Throws `UsageError` if the settings are invalid or the package cannot be used. The
 * factory throws `UsageError` if the package implements another version of the provider interface.
 */
async function openPackage(
  { npm, api }: { npm: string; api: ProviderConfig["api"] },
  settings: ProviderSettings,
  { importPackage, inPieces }: { importPackage(name: string): Promise<unknown>; inPieces: boolean },
): Promise<ModelFactory> {
  if (api !== undefined && npm !== openaiPackage)
    throw packageError(
      `provider.${settings.name}.api is only for "npm": "${openaiPackage}", but the package is ${npm}. Remove "api" or change "npm".`,
    )
  switch (npm) {
    case defaultPackage: {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
      const { baseURL } = settings
      if (baseURL === undefined) throw noBaseURL(settings.name)
      const cache = createChatBodyCache()
      const create = createOpenAICompatible({
        // Without this option, most servers send no usage in a stream.
        includeUsage: true,
        ...known(settings),
        transformRequestBody: (body) => cache.transformRequestBody(marksIntoTexts(body)),
        fetch: alwaysStreamed(cache.fetch(settings.fetch ?? fetch, { inPieces })),
        baseURL,
      })
      return (modelID) => cache.model(create(modelID))
    }
    case openaiPackage: {
      const { createOpenAI } = await import("@ai-sdk/openai")
      const provider = createOpenAI(known(settings))
      const used = api ?? (isOpenAI(settings.baseURL) ? "responses" : "chat")
      return used === "chat" ? provider.chat : (modelID) => unstored(provider.responses(modelID))
    }
    case "@ai-sdk/anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic")
      return createAnthropic(unnamed(settings))
    }
    case "@ai-sdk/google": {
      const { createGoogle } = await import("@ai-sdk/google")
      return createGoogle(unnamed(settings))
    }
    default:
      return await openForeign(npm, settings, importPackage)
  }
}

/** Returns true if OpenAI operates the server. Without a base URL, the package sends its requests to OpenAI. */
function isOpenAI(baseURL: string | undefined): boolean {
  if (baseURL === undefined) return true
  return URL.canParse(baseURL) && /(?:^|\.)api\.openai\.com$/.test(new URL(baseURL).hostname)
}

/**
 * Asks the Responses API not to store answers. The package then sends reasoning back in encrypted form instead of
 * references to stored items, which expire. A configured `store` takes precedence.
 */
function unstored(inner: LanguageModelV4): LanguageModelV4 {
  return changingCalls(inner, ({ providerOptions, ...call }) => ({
    ...call,
    providerOptions: { ...providerOptions, openai: { store: false, ...providerOptions?.openai } },
  }))
}

/** Removes undefined settings, which packages would treat as values. */
function known(settings: ProviderSettings): Defined<ProviderSettings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as Defined<ProviderSettings>
}

type Defined<T> = { name: string } & { [K in keyof T]?: Exclude<T[K], undefined> }

/** Removes undefined settings and the name, which these packages would use as the key of their metadata. */
function unnamed(settings: ProviderSettings): Omit<Defined<ProviderSettings>, "name"> {
  const { name: _, ...rest } = known(settings)
  return rest
}

async function openForeign(
  npm: string,
  settings: ProviderSettings,
  importPackage: (name: string) => Promise<unknown>,
): Promise<ModelFactory> {
  let exported: unknown
  try {
    exported = await importPackage(npm)
  } catch (error) {
    if (systemCode(error) !== "ERR_MODULE_NOT_FOUND") {
      throw packageError(`The provider package ${npm} could not be loaded: ${errorMessage(error)}`, error)
    }
    throw packageError(
      `The provider package ${npm} for provider.${settings.name} is not installed. Install it where Tackle is installed: npm install ${npm} (add -g if Tackle is installed globally)`,
      error,
    )
  }
  const create = isRecord(exported)
    ? Object.entries(exported).find(
        ([name, value]) => /^create[A-Z]/.test(name) && typeof value === "function",
      )
    : undefined
  if (create === undefined)
    throw packageError(`${npm} is not an AI SDK provider: it does not export a create… function.`)
  const provider: unknown = (create[1] as (settings: object) => unknown)(known(settings))
  if (!hasLanguageModel(provider))
    throw packageError(`${npm} is not an AI SDK provider: it does not create language models.`)
  return (modelID) => {
    const model = provider.languageModel(modelID)
    if (model.specificationVersion === "v4") return model
    throw packageError(
      `${npm} uses version "${String(model.specificationVersion)}" of the provider interface. Tackle needs "v4". Install a release of the package that uses "v4".`,
    )
  }
}

function hasLanguageModel(value: unknown): value is { languageModel: ModelFactory } {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  return "languageModel" in value && typeof value.languageModel === "function"
}

function noBaseURL(providerID: string): UsageError {
  return packageError(
    `provider.${providerID}.options.baseURL is missing. Set it to the server's base URL, such as http://127.0.0.1:8000/v1.`,
  )
}

function packageError(message: string, cause?: unknown): UsageError {
  return new UsageError(message, cause, "model.package")
}
