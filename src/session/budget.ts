import type { EventOf, Usage } from "../event/events.ts"
import { type ModelInfo, modelName } from "../model/model.ts"
import type { MessageError } from "../schema/message.ts"
import type { Tokens } from "../schema/part.ts"
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

/** What one request to a model took. In US dollars. */
export interface Spent {
  tokens: Tokens
  cost: number
}

/** US dollars for one step by the prices of the config, per million tokens; 0 where there are none. */
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

/** Nothing used. */
export const noTokens: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

/** The sum of several runs. */
export function addUsage(runs: readonly Usage[]): Usage {
  const sum = sumUsage([])
  for (const usage of runs) {
    for (const name of Object.keys(sum) as (keyof Usage)[]) sum[name] += usage[name]
  }
  return sum
}

/** The sum of several steps. */
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

/** What a run used of its budget, with all that works for it. */
export interface Spending {
  /** Beside its steps and its subagents: for summaries, and for what MCP servers asked. */
  besides(): Spent[]
  /** Apart from its own steps. */
  elsewhere(): Usage
  /** What is left. `underWay`: what subagents that have not ended used. */
  rest(underWay?: Usage): Pick<Budget, "maxTokens" | "maxCost">
  /** Why nothing is left, or nothing. */
  limit(underWay: Usage): MessageError | undefined
  /** Tells the run that this one works for, if there is one, what was used so far. */
  report(underWay: Usage): void
  /** A subagent has ended. */
  childEnded(end: EventOf<"run.completed">): void
  /** The ends of its subagents. */
  readonly children: readonly EventOf<"run.completed">[]
  /** The model was asked in between. */
  sampled(spent: Spent): void
}

/** Of a run that begins. `steps` and `summaries` give what there is of them so far. */
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
