import { type Agent, mergeAgents } from "../agent/agent.ts"
import { builtinAgents } from "../agent/builtin.ts"
import { UsageError } from "../util/errors.ts"
import type { TackleOptions } from "./options.ts"

/** The agents of an engine, found by name. */
export interface Agents {
  /** As they are now: the same map, whatever becomes of them. */
  readonly all: ReadonlyMap<string, Agent>
  /** The agent as it is or, where it is gone, as it was last: what it started is bound by its rules still. */
  known(name: string): Agent
  /** Throws `UsageError` with the names there are. */
  named(name: string): Agent
  /** One that another agent may start. Throws like `named`. */
  subagentNamed(name: string): Agent
  /** All that another agent may start, by name. */
  subagents(): Agent[]
  /** From now on these are the agents. */
  replace(options: AgentOptions): void
}

/** What the options say of agents. */
export type AgentOptions = Pick<
  TackleOptions,
  "agents" | "agentRules" | "projectAgentRules" | "environmentAgentRules"
>

/** The built-in agents and those of the options, with all the rules that the options have for them. */
export function createAgents(options: AgentOptions): Agents {
  const all = new Map<string, Agent>()
  const everKnown = new Map<string, Agent>()
  replace(options)

  function replace({
    agents = {},
    agentRules,
    projectAgentRules,
    environmentAgentRules,
  }: AgentOptions): void {
    const rules = { own: agentRules, project: projectAgentRules, environment: environmentAgentRules }
    const merged = mergeAgents(builtinAgents(), agents, rules)
    all.clear()
    for (const [name, agent] of merged) {
      all.set(name, agent)
      everKnown.set(name, agent)
    }
  }

  function named(name: string): Agent {
    const agent = all.get(name)
    if (agent) return agent
    throw new UsageError(`There is no agent "${name}". There are: ${[...all.keys()].join(", ")}.`)
  }

  const subagents = () =>
    [...all.values()].filter(({ mode }) => mode !== "primary").sort((a, b) => (a.name < b.name ? -1 : 1))

  return {
    all,
    known: (name) => everKnown.get(name) ?? named(name),
    named,
    subagentNamed(name) {
      const agent = all.get(name)
      if (agent && agent.mode !== "primary") return agent
      const names = subagents().map((each) => each.name)
      throw new UsageError(`There is no subagent "${name}". There are: ${names.join(", ") || "none"}.`)
    },
    subagents,
    replace,
  }
}
