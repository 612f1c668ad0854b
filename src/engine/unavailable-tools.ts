import type { Agent } from "../agent/agent.ts"
import type { Session } from "../schema/session.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Agents } from "./definitions.ts"
import type { AgentAccess } from "./policies.ts"

/** Reasons, by tool id, why tools cannot work regardless of the rules. */
export type UnavailableTools = Record<string, string>

/** Facts that determine which tools are available. */
export interface Availability {
  agents: Pick<Agents, "all">
  access: Pick<AgentAccess, "skills">
  lineage: Pick<Lineage, "above">
  /** Maximum depth of subagents. */
  depth: number
  /** Whether plan mode is on. */
  plans: boolean
  /** Returns true while the host answers the model's questions. */
  answered(): boolean
}

/** Returns a function that lists the tools that cannot work for an agent. The function accepts an optional session. */
export function createUnavailableTools({ agents, access, lineage, depth, plans, answered }: Availability) {
  const disabled = (name: string) => (agents.all.has(name) ? undefined : `the agent ${name} is disabled`)

  return (agent: Agent, session?: Session): UnavailableTools => {
    const reasons: UnavailableTools = {}
    if (session && lineage.above(session).length >= depth)
      reasons.task = `subagents are limited to depth ${depth} (subagent.depth)`
    if (access.skills(agent.name).length === 0) reasons.skill = "this agent has no skills"
    const silent = answered() ? undefined : noUser
    if (silent !== undefined) reasons.question = silent
    if (!plans) return reasons
    const fixed =
      silent ?? (session?.parentID === undefined ? undefined : "a subagent cannot change the mode")
    const enter = fixed ?? (agent.plans ? "the session is already in plan mode" : disabled("plan"))
    const exit = fixed ?? (agent.plans ? disabled("build") : "the session is not in plan mode")
    if (enter !== undefined) reasons.plan_enter = enter
    if (exit !== undefined) reasons.plan_exit = exit
    return reasons
  }
}

/** Reason why tools that ask the user are not offered. */
export const noUser = "no user is present to answer"

/** Tools that work only in a session. */
export const onlyInSessions: UnavailableTools = Object.fromEntries(
  ["task", "plan_enter", "plan_exit", "tool_search"].map((id) => [
    id,
    "it works only in a session (tackle run)",
  ]),
)

/** The reasons that a list of all tools shows for tools that are offered only under certain conditions. */
export const onlyForManyTools: UnavailableTools = {
  tool_search: "it is offered only if the definitions of other tools exceed the limit (tool_search.maxBytes)",
}
