import type { Agent } from "../agent/agent.ts"
import { judge, type Policy } from "../permission/policy.ts"
import type { Skill } from "../skill/skill.ts"
import type { Agents } from "./definitions.ts"

/** Determines the subagents and skills that the rules of an agent do not deny. Never asks the user. */
export interface AgentAccess {
  /** Returns the agents that the named agent may start, sorted by name. */
  subagents(agent: string): Agent[]
  /** Returns the skills that the named agent may load. */
  skills(agent: string): Skill[]
}

/**
 * Creates the functions that determine which subagents and skills an agent may use. `policy` returns the policy of an
 * agent in the worktree, without a session.
 */
export function createAgentAccess(
  agents: Agents,
  skills: ReadonlyMap<string, Skill>,
  policy: (agent: Agent) => Policy,
): AgentAccess {
  return {
    subagents(name) {
      const rules = policy(agents.known(name))
      return agents.subagents().filter((agent) => judge(rules, "task", [agent.name]).action !== "deny")
    },
    skills(name) {
      if (skills.size === 0) return []
      const rules = policy(agents.known(name))
      return [...skills.values()].filter((skill) => judge(rules, "skill", [skill.name]).action !== "deny")
    },
  }
}
