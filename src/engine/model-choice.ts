import type { Agent } from "../agent/agent.ts"
import { type LanguageModel, type Model, parseModelName } from "../model/model.ts"
import type { Models } from "../model/providers.ts"
import type { ModelRef } from "../schema/message.ts"
import { UsageError } from "../util/errors.ts"

/** Which model is asked. */
export interface ModelChoice {
  /** The session's, else the agent's, else the engine's. Throws `UsageError` where none is chosen or it is not known. */
  of(session: { model?: ModelRef }, agent: Agent): Promise<Model>
  /** Throws where the model, or the one that the agent has, cannot be asked. Where none is chosen yet, nothing is said. */
  check(agent: Agent, model: string | undefined): Promise<void>
}

/** `given` is the engine's own: its name, or a model itself, which then also answers to its name. */
export function createModelChoice(
  models: Pick<Models, "get">,
  given: string | LanguageModel | Model | undefined,
): ModelChoice {
  async function enginesOwn(): Promise<Model> {
    if (given === undefined) {
      throw new UsageError(
        'No model is chosen. Name one: --model provider/model, or "model" in the configuration.',
      )
    }
    if (typeof given === "string") return models.get(parseModelName(given))
    return "doStream" in given ? modelOf(given) : given
  }

  async function modelFor(session: { model?: ModelRef }, agent: Agent): Promise<Model> {
    const chosen = session.model ?? agent.model
    if (!chosen || (typeof given === "object" && isModel(given, chosen))) return enginesOwn()
    return models.get(chosen)
  }

  return {
    of: modelFor,
    async check(agent, model) {
      const isChosen = model !== undefined || agent.model !== undefined || given !== undefined
      if (!isChosen) return
      const chosen = model === undefined ? modelFor({}, agent) : models.get(parseModelName(model))
      await (await chosen).language()
    },
  }
}

/** A model of the AI SDK as one of ours; nothing is known of its limits and prices. */
function modelOf(language: LanguageModel): Model {
  const ref: ModelRef = { providerID: language.provider, modelID: language.modelId }
  return {
    info: { ref, name: language.modelId, toolCall: true, limit: {}, family: "other" },
    language: async () => language,
  }
}

function isModel(given: LanguageModel | Model, ref: ModelRef): boolean {
  const own = "doStream" in given ? modelOf(given).info.ref : given.info.ref
  return own.providerID === ref.providerID && own.modelID === ref.modelID
}
