import type { EventOf, Usage } from "../event/events.ts"
import { type ModelInfo, modelName } from "../model/model.ts"
import type { MessageError } from "../schema/message.ts"
import type { Tokens } from "../schema/part.ts"
import type { Spent } from "../schema/spending.ts"
import { UsageError } from "../util/errors.ts"
import { counted } from "../util/words.ts"

/** Limits for one prompt. `maxTokens` and `maxCost` include its subagents. */
export interface Budget {
  /** Maximum number of model steps, excluding steps of subagents. At least 1. */
  maxSteps: number
  /** Maximum number of tokens, excluding cache reads. */
  maxTokens?: number
  /** Maximum cost in US dollars, at the prices in the config. */
  maxCost?: number
}

/** The budget of a parent run, shared by its concurrent subagents. */
export interface SharedBudget {
  /**
   * Records the usage of the subagent's prompt so far. Called before each step of the subagent and of the subagents
   * below it.
   */
  used(usage: Usage): void
  /** Returns the error for a limit that has been reached, or undefined if no limit has been reached. */
  limit(): MessageError | undefined
}

/**
 * Returns the error for the limit that makes step number `step` the last step, or undefined if no limit is reached.
 * `used` is the usage of the whole prompt so far.
 */
export function limitReached(budget: Budget, step: number, used: Usage): MessageError | undefined {
  const { maxSteps, maxTokens, maxCost } = budget
  if (step >= maxSteps) return stepsMessage(maxSteps)
  if (maxTokens !== undefined && countTokens(used) >= maxTokens)
    return stopped(
      `it reached its limit of ${counted(maxTokens, "token")} (set by --max-tokens, or by subagent.tokens in the config)`,
    )
  if (maxCost !== undefined && used.cost >= maxCost)
    return stopped(`it reached its limit of $${maxCost} (set by --max-cost)`)
  return undefined
}

/** Returns the error for a run that reached its step limit. */
export function stepsMessage(steps: number): MessageError {
  return stopped(
    `it reached its limit of ${counted(steps, "step")} (set by --max-steps, by the agent's "steps", or by subagent.steps in the config)`,
  )
}

/** Returns the tokens and dollars that remain in a budget. The values are never negative. */
function restOf({ maxTokens, maxCost }: Budget, used: Usage): Pick<Budget, "maxTokens" | "maxCost"> {
  return {
    maxTokens: maxTokens === undefined ? undefined : Math.max(0, maxTokens - countTokens(used)),
    maxCost: maxCost === undefined ? undefined : Math.max(0, maxCost - used.cost),
  }
}

/** Throws `UsageError` if the budget has a cost limit but the model's prices are unknown. */
export function assertCountable({ maxCost }: Pick<Budget, "maxCost">, { cost, ref }: ModelInfo): void {
  if (maxCost === undefined || cost !== undefined) return
  throw new UsageError(
    `The prices of ${modelName(ref)} are unknown, so a cost limit cannot be enforced. In the config, set the prices in dollars per million tokens as provider.${ref.providerID}.models.${ref.modelID}.cost.input and .output, or limit the number of tokens instead.`,
  )
}

/** Returns the number of tokens that count toward a limit. Cache reads do not count. */
export function countTokens({ input, output, reasoning, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheWrite
}

function stopped(why: string): MessageError {
  return { name: "limit", message: `The run was stopped: ${why}.` }
}

/**
 * Returns the cost of one step in US dollars. `prices` are per million tokens. The cost is 0 if the prices are unknown.
 */
export function costOf(tokens: Tokens, prices: ModelInfo["cost"]): number {
  if (!prices) return 0
  const { input, output, reasoning, cache } = tokens
  const sum =
    input * prices.input +
    (output + reasoning) * prices.output +
    cache.read * (prices.cacheRead ?? prices.input) +
    cache.write * (prices.cacheWrite ?? prices.input)
  return sum / 1_000_000
}

/** Token counts that are all zero. */
export const noTokens: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

/** Returns the sum of the usage of several runs. */
export function addUsage(runs: readonly Usage[]): Usage {
  const sum = sumUsage([])
  for (const usage of runs) {
    for (const name of Object.keys(sum) as (keyof Usage)[]) sum[name] += usage[name]
  }
  return sum
}

/** Returns the sum of the usage of several steps. */
export function sumUsage(steps: readonly Spent[]): Usage {
  const usage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }
  for (const { tokens, cost } of steps) {
    usage.input += tokens.input
    usage.output += tokens.output
    usage.reasoning += tokens.reasoning
    usage.cacheRead += tokens.cache.read
    usage.cacheWrite += tokens.cache.write
    usage.cost += cost
  }
  return usage
}

/** Tracks the budget usage of a run and its subagents. */
export interface Spending {
  /** Returns the usage of summaries and of requests by MCP servers. */
  besides(): Spent[]
  /** Returns the usage of summaries, of requests by MCP servers, and of subagents that have finished. */
  elsewhere(): Usage
  /** Returns the remaining budget. `underWay` is the usage of running subagents. */
  rest(underWay?: Usage): Pick<Budget, "maxTokens" | "maxCost">
  /** Returns the error if this run or a parent run has reached its token or cost limit, or undefined otherwise. */
  limit(underWay: Usage): MessageError | undefined
  /** Reports the usage so far to the parent run, if any. */
  report(underWay: Usage): void
  /** Adds the final usage of a subagent. */
  childEnded(end: EventOf<"run.completed">): void
  /** The `run.completed` events of the subagents that have finished. */
  readonly children: readonly EventOf<"run.completed">[]
  /** Adds the usage of a model request that is not part of a step. */
  sampled(spent: Spent): void
}

/** Creates the usage tracker for a run. `steps` and `summaries` return the usage of the steps and summaries so far. */
export function createSpending({
  budget,
  shared,
  steps,
  summaries,
}: {
  budget: Budget
  shared: SharedBudget | undefined
  steps(): readonly Spent[]
  summaries(): readonly Spent[]
}): Spending {
  const children: EventOf<"run.completed">[] = []
  const samples: Spent[] = []
  const besides = () => [...summaries(), ...samples]
  const elsewhere = () => addUsage([sumUsage(besides()), ...children.map(({ usage }) => usage)])
  const used = (...underWay: Usage[]) => addUsage([sumUsage(steps()), elsewhere(), ...underWay])
  return {
    besides,
    elsewhere,
    rest: (underWay) => restOf(budget, used(...(underWay ? [underWay] : []))),
    limit: (underWay) => limitReached(budget, 0, used(underWay)) ?? shared?.limit(),
    report: (underWay) => shared?.used(used(underWay)),
    childEnded: (end) => children.push(end),
    children,
    sampled: (spent) => samples.push(spent),
  }
}
