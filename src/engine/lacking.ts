import type { Agent } from "../agent/agent.ts"
import type { Session } from "../schema/session.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Agents } from "./agents.ts"
import type { Reach } from "./reach.ts"

/** By the ids of tools that cannot work, whatever the rules say: why not. */
export type Lacking = Record<string, string>

/** What there is for the tools that need more than files. */
export interface Means {
  agents: Pick<Agents, "all">
  reach: Pick<Reach, "skills">
  lineage: Pick<Lineage, "above">
  /** So deep may subagents go. */
  depth: number
  plans: boolean
  /** True while somebody is there to answer the model's questions. */
  answered(): boolean
}

/** Tells which tools cannot work for an agent: where the session is, or without one anywhere. */
export function createLacking({ agents, reach, lineage, depth, plans, answered }: Means) {
  function missing(name: string): string | undefined {
    return agents.all.has(name) ? undefined : `the agent ${name} is switched off`
  }

  return (agent: Agent, session?: Session): Lacking => {
    const reasons: Lacking = {}
    if (session && lineage.above(session).length >= depth)
      reasons.task = `subagents may go no deeper than ${depth} (subagent.depth)`
    if (reach.skills(agent.name).length === 0) reasons.skill = "there are no skills for this agent"
    const silent = answered() ? undefined : nobodyAnswers
    if (silent !== undefined) reasons.question = silent
    if (!plans) return reasons
    const fixed =
      silent ?? (session?.parentID === undefined ? undefined : "a subagent does not change its mode")
    const enter = fixed ?? (agent.plans ? "the session is in plan mode" : missing("plan"))
    const exit = fixed ?? (agent.plans ? missing("build") : "the session is not in plan mode")
    if (enter !== undefined) reasons.plan_enter = enter
    if (exit !== undefined) reasons.plan_exit = exit
    return reasons
  }
}

/** Why the tools that ask are not offered. */
export const nobodyAnswers = "nobody is there to answer"

/** What has nothing to work on where a tool is called by itself. */
export const onlyInSessions: Lacking = Object.fromEntries(
  ["task", "plan_enter", "plan_exit", "tool_search"].map((id) => [
    id,
    "it works only within a session (tackle run)",
  ]),
)

/** Why a list of all tools has this one not among those that are offered. */
export const onlyForMany: Lacking = {
  tool_search:
    "it is offered in a session in place of tools whose definitions are too long together (tool_search.maxBytes)",
}
