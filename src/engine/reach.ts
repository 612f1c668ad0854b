import type { Agent } from "../agent/agent.ts"
import { judge, type Policy } from "../permission/policy.ts"
import type { Skill } from "../skill/skill.ts"
import type { Agents } from "./agents.ts"

/** What the rules let an agent, by its name, bring in. Nothing here asks: what would be asked is in reach. */
export interface Reach {
  /** The agents that it may start, by name. */
  subagents(agent: string): Agent[]
  /** The skills that it may load. */
  skills(agent: string): Skill[]
  /** The directories of these skills. */
  skillDirectories(agent: string): string[]
}

/** `policy` is that of an agent in the work tree, outside of any session. */
export function createReach(
  agents: Agents,
  skills: ReadonlyMap<string, Skill>,
  policy: (agent: Agent) => Policy,
): Reach {
  function skillsOf(name: string): Skill[] {
    if (skills.size === 0) return []
    const rules = policy(agents.known(name))
    return [...skills.values()].filter((skill) => judge(rules, "skill", [skill.name]).action !== "deny")
  }

  return {
    subagents(name) {
      const rules = policy(agents.known(name))
      return agents.subagents().filter((agent) => judge(rules, "task", [agent.name]).action !== "deny")
    },
    skills: skillsOf,
    skillDirectories: (name) => skillsOf(name).map(({ directory }) => directory),
  }
}
