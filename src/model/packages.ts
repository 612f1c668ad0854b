import type { LanguageModelV4 } from "@ai-sdk/provider"
import { errorMessage, systemCode, UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { marksIntoTexts } from "./cache-text.ts"
import { createChatBodyCache } from "./chat-body.ts"
import { defaultPackage } from "./provider-table.ts"
import { alwaysStreamed } from "./whole-answer.ts"

/** What a provider's package is made with. Further keys are the package's own. */
export interface ProviderSettings {
  name: string
  baseURL: string | undefined
  apiKey: string | undefined
  headers: Record<string, string> | undefined
  fetch: typeof fetch | undefined
  [option: string]: unknown
}

/** Makes the model of this id. */
export type ModelFactory = (modelID: string) => LanguageModelV4

/**
 * The factory of a package. Those that ship with Tackle are named literally, so that the bundler makes a chunk of each
 * and none is loaded before it is used; any other is imported by its name through `importPackage`.
 * Throws `UsageError` where a package is missing or does not speak this version of the provider interface.
 */
export async function openPackage(
  npm: string,
  settings: ProviderSettings,
  importPackage: (name: string) => Promise<unknown>,
): Promise<ModelFactory> {
  switch (npm) {
    case defaultPackage: {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
      const { baseURL } = settings
      if (baseURL === undefined) throw noBaseURL(settings.name)
      const cache = createChatBodyCache()
      const create = createOpenAICompatible({
        // Without this most servers count no tokens in a stream.
        includeUsage: true,
        ...known(settings),
        transformRequestBody: (body) => cache.transformRequestBody(marksIntoTexts(body)),
        fetch: cache.fetch(alwaysStreamed(settings.fetch ?? fetch)),
        baseURL,
      })
      return (modelID) => cache.model(create(modelID))
    }
    case "@ai-sdk/openai": {
      const { createOpenAI } = await import("@ai-sdk/openai")
      return createOpenAI(known(settings)).chat
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

/** The settings that are set: packages take a key that is there but undefined for a value. */
function known(settings: ProviderSettings): Defined<ProviderSettings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as Defined<ProviderSettings>
}

type Defined<T> = { name: string } & { [K in keyof T]?: Exclude<T[K], undefined> }

/** These two name their metadata after the provider's name: it has to stay theirs. */
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
      throw packageError(`The provider package ${npm} fails to load: ${errorMessage(error)}`, error)
    }
    throw packageError(
      `The provider package ${npm} of provider.${settings.name} is not installed. Install it beside Tackle: npm install ${npm}`,
      error,
    )
  }
  const create = isRecord(exported)
    ? Object.entries(exported).find(
        ([name, value]) => /^create[A-Z]/.test(name) && typeof value === "function",
      )
    : undefined
  if (create === undefined)
    throw packageError(`${npm} is no AI SDK provider: it exports no create… function.`)
  const provider: unknown = (create[1] as (settings: object) => unknown)(known(settings))
  if (!hasLanguageModel(provider))
    throw packageError(`${npm} is no AI SDK provider: it makes no language models.`)
  return (modelID) => {
    const model = provider.languageModel(modelID)
    if (model.specificationVersion === "v4") return model
    throw packageError(
      `${npm} speaks version "${String(model.specificationVersion)}" of the provider interface; Tackle needs "v4". Install its newest release.`,
    )
  }
}

function hasLanguageModel(value: unknown): value is { languageModel: ModelFactory } {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  return "languageModel" in value && typeof value.languageModel === "function"
}

function noBaseURL(providerID: string): UsageError {
  return packageError(
    `provider.${providerID}.options.baseURL is missing: say where the server is, such as http://127.0.0.1:8000/v1.`,
  )
}

function packageError(message: string, cause?: unknown): UsageError {
  return new UsageError(message, cause, "model.package")
}
