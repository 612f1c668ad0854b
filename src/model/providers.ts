import type { LanguageModelV4 } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { ModelNotFoundError } from "./errors.ts"
import { type Model, type ModelInfo, modelName, type ProviderConfig } from "./model.ts"
import { createOfflineModel, offlineInfo } from "./offline.ts"
import { type OpeningDependencies, openModel } from "./open-model.ts"
import { describeModel, findConfigured, own, providerTable, toolPolicyOf } from "./provider-table.ts"
import { withToolPolicy } from "./tool-policy.ts"
import { createToolSupport, type ToolSupport } from "./tool-support.ts"

/** Every model that can be named. */
export interface Models {
  /** Throws `ModelNotFoundError` with near names. Loads and asks nothing. */
  get(ref: ModelRef): Promise<Model>
  /** The models of the config and the built-in one. Known providers have more: any id is taken for them. */
  list(): ModelInfo[]
  /** Ids of the providers whose models can be named, the stand-in's left out. */
  providers(): string[]
}

/** The sources of models beside the table of known providers. */
export interface ModelsDependencies extends OpeningDependencies {
  /** `provider` of the config. */
  config: Readonly<Record<string, ProviderConfig>>
  /** Which servers refused tools. Default: one that ends with these models. */
  toolSupport?: ToolSupport
  /** Whole providers from elsewhere, by id. They go before the config's. */
  extra?: Readonly<Record<string, (modelID: string) => Model>>
}

/** The models of the table, the config and `extra`. Nothing is loaded before a model's `language()` is called. */
export function createModels(dependencies: ModelsDependencies): Models {
  const { config, extra = {}, toolSupport = createToolSupport() } = dependencies
  const made = new Map<string, Model>()

  /** `provider/…` stands for those that take any name; an own provider that lists its models takes these alone. */
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
        // A failure is not kept: the person may have mended it since.
        language ??= openModel(provider, ref.modelID, dependencies)
          .then((opened) =>
            withToolPolicy(opened, { ref, memory: toolSupport, ...toolPolicyOf(provider, ref.modelID) }),
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
