import type { Agent } from "../agent/agent.ts"
import type { Credentials } from "../model/credentials.ts"
import { type LanguageModel, type Model, parseModelName } from "../model/model.ts"
import { describeLanguage } from "../model/provider-table.ts"
import { createModels, type Models } from "../model/providers.ts"
import { openToolSupport } from "../model/tool-support.ts"
import type { Plugins } from "../plugin/plugins.ts"
import type { ModelRef } from "../schema/message.ts"
import { UsageError } from "../util/errors.ts"
import type { EngineLocation, TackleOptions } from "./options.ts"

/** Opens the models of known providers and of the providers in the options. Sends no requests. */
export function openModels(
  { providers = {}, fetch, aroundFetch, recorded }: TackleOptions,
  credentials: Credentials,
  plugins: Plugins | undefined,
  { environment, dataDirectory }: Pick<EngineLocation, "environment" | "dataDirectory">,
): Models {
  // A recording can name any provider address, so a replay receives no keys.
  const isReplay = recorded !== undefined
  return createModels({
    config: providers,
    credentials: isReplay ? replayKeys : credentials,
    environment,
    toolSupport: openToolSupport(dataDirectory),
    fetch,
    aroundFetch,
    signedIn:
      plugins === undefined || isReplay ? undefined : (provider) => plugins.signedIn(provider, credentials),
  })
}

/** Placeholder keys for a replay, which sends no requests. A provider without a key would be unavailable. */
const replayKeys: Pick<Credentials, "key"> = { key: async () => "none" }

/** Determines the model for a session. */
export interface ModelChoice {
  /**
   * Returns the session's model or, if it has none, the agent's model, or else the engine's model. Throws `UsageError`
   * if no model is selected or the model is unknown.
   */
  of(session: { model?: ModelRef }, agent: Agent): Promise<Model>
  /** Returns the model with this name (`provider/model`). Throws `UsageError` if the model is unknown. */
  named(name: string): Promise<Model>
  /**
   * Throws if the named model cannot be used, for example because it is unknown or has no key. Without a name, checks
   * the agent's or the engine's model. Does nothing if no model is selected yet.
   */
  check(agent: Agent, model: string | undefined): Promise<void>
}

/**
 * Creates the model choice for an engine. `model` is the engine's default: a name, or a model object, which sessions
 * can also select by its name.
 */
export function createModelChoice(
  models: Pick<Models, "get">,
  { model: given, providers = {} }: Pick<TackleOptions, "model" | "providers">,
): ModelChoice {
  let described: Promise<Model> | undefined

  async function defaultModel(): Promise<Model> {
    if (given === undefined) {
      throw new UsageError(
        'No model is selected. Set "model" in the config or in the options of createTackle.',
      )
    }
    if (typeof given === "string") return models.get(parseModelName(given))
    if (!("doStream" in given)) return given
    described ??= describeLanguage(given, providers).then((info) => ({ info, language: async () => given }))
    return await described
  }

  async function modelFor(session: { model?: ModelRef }, agent: Agent): Promise<Model> {
    const chosen = session.model ?? agent.model
    return chosen ? get(chosen) : defaultModel()
  }

  async function get(ref: ModelRef): Promise<Model> {
    return typeof given === "object" && isModel(given, ref) ? defaultModel() : models.get(ref)
  }

  return {
    of: modelFor,
    named: async (name) => get(parseModelName(name)),
    async check(agent, model) {
      const isChosen = model !== undefined || agent.model !== undefined || given !== undefined
      if (!isChosen) return
      const chosen = model === undefined ? modelFor({}, agent) : get(parseModelName(model))
      await (await chosen).language()
    },
  }
}

function isModel(given: LanguageModel | Model, ref: ModelRef): boolean {
  const own = "doStream" in given ? { providerID: given.provider, modelID: given.modelId } : given.info.ref
  return own.providerID === ref.providerID && own.modelID === ref.modelID
}
