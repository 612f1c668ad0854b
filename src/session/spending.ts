import type { EventOf, Usage } from "../event/events.ts"
import type { MessageError } from "../schema/message.ts"
import { type Budget, limitReached, restOf, type SharedBudget } from "./budget.ts"
import { addUsage, type Spent, sumUsage } from "./cost.ts"

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
