import type { ModelRef } from "../schema/message.ts"
import type { Ruleset } from "../schema/permission.ts"

/** Who works: a prompt, a model and what it may do. */
export interface Agent {
  name: string
  description: string
  /** `primary` talks with the person, `subagent` is started by another agent, `all` does both. */
  mode: "primary" | "subagent" | "all"
  /** The system prompt's first part. */
  prompt: string
  model?: ModelRef
  temperature?: number
  /** Steps of the model in one prompt. */
  steps: number
  /** Rules of the person's config for this agent; a layer of the policy. */
  permission: Ruleset
  /** A built-in agent's own bounds: the stricter of this and the policy holds. */
  ceiling?: Ruleset
  /** Its commands run in a sandbox or not at all, whatever the configuration says of others. */
  sandbox?: "require"
  /** Its work is a plan: the session's plan file is the one file it may write, where there is plan mode. */
  plans?: true
}

/** What a config may say of an agent. */
export interface AgentConfig {
  description?: string | undefined
  mode?: Agent["mode"] | undefined
  prompt?: string | undefined
  model?: ModelRef | undefined
  temperature?: number | undefined
  steps?: number | undefined
  disable?: boolean | undefined
}

/** The step limit of an agent that names none (`SPEC` of the loop: 100). */
export const defaultSteps = 100

/**
 * Built-in agents with the config's changes over them, and the config's own agents. `rules` are the agents' permission
 * rules by name. Agents with `disable` are left out.
 */
export function mergeAgents(
  builtins: readonly Agent[],
  config: Readonly<Record<string, AgentConfig>>,
  rules: Readonly<Record<string, Ruleset>>,
): Map<string, Agent> {
  const agents = new Map(builtins.map((agent) => [agent.name, agent]))
  const base = builtins[0]
  for (const name of new Set([...Object.keys(config), ...Object.keys(rules)])) {
    const changes = Object.hasOwn(config, name) ? config[name] : undefined
    if (changes?.disable) {
      agents.delete(name)
      continue
    }
    const known = agents.get(name)
    const own: Agent = known ?? {
      name,
      description: `The agent "${name}" of the configuration.`,
      mode: "all",
      prompt: base?.prompt ?? "",
      steps: defaultSteps,
      permission: [],
    }
    const { disable: _, ...fields } = changes ?? {}
    const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    agents.set(name, {
      ...own,
      ...set,
      permission: (Object.hasOwn(rules, name) ? rules[name] : undefined) ?? [],
    })
  }
  return agents
}
