import type { LanguageModelV4 } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { own } from "../util/json.ts"
import { ModelNotFoundError } from "./errors.ts"
import { type Model, type ModelInfo, modelName, type ProviderConfig } from "./model.ts"
import { createOfflineModel, offlineInfo } from "./offline.ts"
import { type OpeningDependencies, openModel } from "./open-model.ts"
import { describeModel, findConfigured, providerTable, toolPolicyOf } from "./provider-table.ts"
import { withSimplerSchemas } from "./simpler-schemas.ts"
import { withToolPolicy } from "./tool-policy.ts"
import { createToolSupport, type ToolSupport } from "./tool-support.ts"

/** All available models. */
export interface Models {
  /** Returns a model without loading it. Rejects with `ModelNotFoundError` if the provider or model is unknown. */
  get(ref: ModelRef): Promise<Model>
  /** Returns the configured models and the built-in one. Known providers also accept other model ids. */
  list(): ModelInfo[]
  /** Returns the ids of all providers except the built-in one. */
  providers(): string[]
}

/** Sources of models in addition to the table of known providers. */
export interface ModelsDependencies extends OpeningDependencies {
  /** The config section `provider`. */
  config: Readonly<Record<string, ProviderConfig>>
  /** Records of models that reject requests with tools. Default: an in-memory store. */
  toolSupport?: ToolSupport
  /** Additional providers by id. They override the config. */
  extra?: Readonly<Record<string, (modelID: string) => Model>>
}

/** Number of models that are kept, because a client of a server can ask for any number of names. */
const maxKept = 1_000

/**
 * Combines the models from the table, the config, and `extra`. A provider package is loaded on the first call to
 * `language()`.
 */
export function createModels(dependencies: ModelsDependencies): Models {
  const { config, extra = {}, toolSupport = createToolSupport() } = dependencies
  const made = new Map<string, Model>()

  /** Returns names for error messages. `provider/…` means that the provider accepts any model. */
  function knownNames(): string[] {
    const open = providers().filter((id) => own(extra, id) ?? describeModel(findConfigured(config, id), ""))
    return [...list().map(({ ref }) => modelName(ref)), ...open.map((id) => `${id}/…`)]
  }

  function providers(): string[] {
    const known = providerTable.map(({ id }) => id)
    return [...new Set([...known, ...Object.keys(config), ...Object.keys(extra)])]
  }

  function list(): ModelInfo[] {
    const configured = Object.keys(config).flatMap((providerID) =>
      Object.keys(config[providerID]?.models ?? {}).map((modelID) =>
        describeModel(findConfigured(config, providerID), modelID),
      ),
    )
    return [...configured.filter((info) => info !== undefined), offlineInfo]
  }

  function make(ref: ModelRef): Model {
    const fromExtra = own(extra, ref.providerID)
    if (fromExtra) return fromExtra(ref.modelID)
    if (modelName(ref) === modelName(offlineInfo.ref)) return createOfflineModel()
    const provider = findConfigured(config, ref.providerID)
    const info = describeModel(provider, ref.modelID)
    if (provider === undefined || info === undefined) throw new ModelNotFoundError(ref, knownNames())
    let language: Promise<LanguageModelV4> | undefined
    return {
      info,
      language() {
        // Do not cache a failure, since the user may fix its cause.
        language ??= openModel(provider, ref.modelID, dependencies)
          .then((opened) =>
            withToolPolicy(withSimplerSchemas(opened, ref), {
              ref,
              memory: toolSupport,
              ...toolPolicyOf(provider, ref.modelID),
            }),
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
      const [oldest] = made.keys()
      if (made.size > maxKept && oldest !== undefined) made.delete(oldest)
      return model
    },
  }
}
