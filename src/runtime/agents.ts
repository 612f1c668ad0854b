import { type Agent, mergeAgents } from "../agent/agent.ts"
import { builtinAgents } from "../agent/builtin.ts"
import { UsageError } from "../util/errors.ts"
import type { TackleOptions } from "./options.ts"

/** The agents of an engine, found by name. */
export interface Agents {
  readonly all: ReadonlyMap<string, Agent>
  /** Throws `UsageError` with the names there are. */
  named(name: string): Agent
  /** One that another agent may start. Throws like `named`. */
  subagentNamed(name: string): Agent
  /** All that another agent may start, by name. */
  subagents(): Agent[]
}

/** The built-in agents and those of the options, with all the rules that the options have for them. */
export function createAgents(options: TackleOptions): Agents {
  const all = mergeAgents(builtinAgents(), options.agents ?? {}, {
    own: options.agentRules,
    project: options.projectAgentRules,
    environment: options.environmentAgentRules,
  })
  const subagents = () =>
    [...all.values()].filter(({ mode }) => mode !== "primary").sort((a, b) => (a.name < b.name ? -1 : 1))

  return {
    all,
    named(name) {
      const agent = all.get(name)
      if (agent) return agent
      throw new UsageError(`There is no agent "${name}". There are: ${[...all.keys()].join(", ")}.`)
    },
    subagentNamed(name) {
      const agent = all.get(name)
      if (agent && agent.mode !== "primary") return agent
      const names = subagents().map((each) => each.name)
      throw new UsageError(`There is no subagent "${name}". There are: ${names.join(", ") || "none"}.`)
    },
    subagents,
  }
}
