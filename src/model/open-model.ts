import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { UsageError } from "../util/errors.ts"
import { isStrictSchema } from "./answer-schema.ts"
import { own, type Provider } from "./configured-provider.ts"
import type { Credentials } from "./credentials.ts"
import type { ModelConfig } from "./model.ts"
import { type ModelFactory, openPackage } from "./packages.ts"
import { keyRemedy, optionsKeyOf } from "./provider-table.ts"

/** What opening a model takes from outside. */
export interface OpeningDependencies {
  credentials: Pick<Credentials, "key">
  environment: Readonly<Record<string, string | undefined>>
  /** What a plugin gives the provider's package for whoever is signed in. Undefined: nothing. */
  signedIn?: (provider: {
    id: string
    options: Readonly<Record<string, unknown>>
  }) => Promise<Record<string, unknown> | undefined>
  /** Default: `httpFetch` of `http-fetch.ts`. */
  fetch?: typeof fetch
  /** Stands between the packages and what asks for them, be that `fetch` or what a plugin gives: nothing goes past it. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /** How a package that does not ship with Tackle is imported. Default: `import(name)`. */
  importPackage?: (name: string) => Promise<unknown>
}

/** Loads the provider's package and makes the model with it. Throws `UsageError` for a missing key or package. */
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
    optionsKey: optionsKeyOf(npm, id),
    options: model?.options,
    timeoutMs: timeout === false ? undefined : timeout,
  })
}

function isFetch(value: unknown): value is typeof fetch {
  return typeof value === "function"
}

/** Loaded when it is needed: not every engine asks by it. */
async function plainFetch({ fetch }: OpeningDependencies): Promise<typeof globalThis.fetch> {
  return fetch ?? (await import("./http-fetch.ts")).httpFetch
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
    if (options !== undefined || format !== undefined) {
      const asked = call.providerOptions
      changed.providerOptions = { ...asked, [key]: { ...strict, ...options, ...asked?.[key] } }
    }
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
