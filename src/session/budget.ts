import type { Usage } from "../event/events.ts"
import { type ModelInfo, modelName } from "../model/model.ts"
import type { MessageError } from "../schema/message.ts"
import { UsageError } from "../util/errors.ts"

/** What one prompt may use, with the subagents that it starts. */
export interface Budget {
  /** Steps of the model, those of subagents not counted. At least 1. */
  maxSteps: number
  /** Tokens, without what came from a cache. */
  maxTokens?: number
  /** US dollars, by the prices of the config. */
  maxCost?: number
}

/** What a subagent has to do with the budget of the run that it works for, of which others take at the same time. */
export interface SharedBudget {
  /** To be told before each step: all that the subagent's prompt used so far. */
  used(usage: Usage): void
  /** Why the run may use no more, or nothing. */
  limit(): MessageError | undefined
}

/** Why step number `step` has to be the last, or nothing. `used`: by all that the prompt did so far. */
export function limitReached(budget: Budget, step: number, used: Usage): MessageError | undefined {
  const { maxSteps, maxTokens, maxCost } = budget
  if (step >= maxSteps) return stepsMessage(maxSteps)
  if (maxTokens !== undefined && countTokens(used) >= maxTokens)
    return stopped(`it used up its ${maxTokens} tokens (--max-tokens)`)
  if (maxCost !== undefined && used.cost >= maxCost) return stopped(`it used up its $${maxCost} (--max-cost)`)
  return undefined
}

/** The message of a run that reached its number of steps. */
export function stepsMessage(steps: number): MessageError {
  return stopped(
    `it reached its limit of ${steps} step${steps === 1 ? "" : "s"} (--max-steps, or "steps" of the agent)`,
  )
}

/** What is left of the tokens and dollars; never below 0. */
export function restOf({ maxTokens, maxCost }: Budget, used: Usage): Pick<Budget, "maxTokens" | "maxCost"> {
  return {
    ...(maxTokens === undefined ? {} : { maxTokens: Math.max(0, maxTokens - countTokens(used)) }),
    ...(maxCost === undefined ? {} : { maxCost: Math.max(0, maxCost - used.cost) }),
  }
}

/** Throws `UsageError` for a limit in dollars on a model that nobody knows the prices of: it would never hold. */
export function assertCountable({ maxCost }: Pick<Budget, "maxCost">, { cost, ref }: ModelInfo): void {
  if (maxCost === undefined || cost !== undefined) return
  throw new UsageError(
    `The prices of ${modelName(ref)} are not known, so a limit of cost cannot hold. Set provider.${ref.providerID}.models.${ref.modelID}.cost (input, output: dollars per million tokens), or limit the tokens.`,
  )
}

function countTokens({ input, output, reasoning, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheWrite
}

function stopped(why: string): MessageError {
  return { name: "limit", message: `The run was stopped: ${why}.` }
}
