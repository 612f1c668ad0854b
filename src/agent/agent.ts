import type { PermissionConfig } from "../permission/rules.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Rule, Ruleset } from "../schema/permission.ts"

/** An agent's prompt, model, limits and permissions. */
export interface Agent {
  name: string
  description: string
  /** `primary`: the agent talks to the user. `subagent`: another agent starts this agent. `all`: both. */
  mode: "primary" | "subagent" | "all"
  /** The first part of the system prompt. */
  prompt: string
  model?: ModelRef
  temperature?: number
  /** Nucleus sampling: share of the probability mass, from 0 to 1. */
  top_p?: number
  /** Maximum number of model steps per prompt. */
  steps: number
  /** Rules for this agent in the user's config. They are one layer of the policy. */
  permission: Ruleset
  /**
   * Rules for this agent in the project's config, applied after `permission`. They never override a deny rule or the
   * ceiling.
   */
  projectPermission?: Ruleset
  /** Rules for this agent in the user's environment, applied after `permission` and `projectPermission`. */
  environmentPermission?: Ruleset
  /** Maximum permissions of a built-in agent. The stricter of the ceiling and the other rules applies: see `Policy`. */
  ceiling?: Ruleset
  /** Rules that limit the agent to its tools. No other rule overrides them. */
  tools?: Ruleset
  /** Whether lists for users omit the agent. */
  hidden?: boolean
  /**
   * `require` means that commands run only in a sandbox, regardless of the config. Without a sandbox, commands are
   * denied, except those that a rule for this agent in the user's config or environment allows or asks about.
   */
  sandbox?: "require"
  /** True for the plan mode agent, which may write the session's plan file. */
  plans?: true
  /** Why the agent must not run: its file is invalid, so some of its rules are unknown. */
  problem?: string
}

/** An agent's settings in a config. */
export interface AgentConfig {
  description?: string | undefined
  mode?: Agent["mode"] | undefined
  prompt?: string | undefined
  model?: ModelRef | undefined
  temperature?: number | undefined
  top_p?: number | undefined
  steps?: number | undefined
  /**
   * Keyed by tool id or pattern. `false` removes a tool. `true` makes a tool available, but does not override the
   * rules.
   */
  tools?: Readonly<Record<string, boolean>> | undefined
  hidden?: boolean | undefined
  disable?: boolean | undefined
  /** Rules for this agent in the config format. They precede the rules in `agentRules`. */
  permission?: PermissionConfig | undefined
  /** Why the agent must not run. Prompts for the agent fail with this text. */
  problem?: string | undefined
}

/** Default maximum number of model steps per prompt. */
export const defaultSteps = 100

type RulesByAgent = Readonly<Record<string, Ruleset>>

/** Permission rules keyed by agent name, from the user's config, the project's config and the user's environment. */
export interface AgentRules {
  own?: RulesByAgent | undefined
  project?: RulesByAgent | undefined
  environment?: RulesByAgent | undefined
}

/**
 * Returns the built-in agents, as changed by the config, and the agents that the config defines. A name that occurs
 * only in rules also defines an agent. Agents with `disable` are omitted.
 */
export function mergeAgents(
  builtins: readonly Agent[],
  config: Readonly<Record<string, AgentConfig>>,
  { own: ownRules = {}, project: projectRules = {}, environment: environmentRules = {} }: AgentRules = {},
): Map<string, Agent> {
  const agents = new Map(builtins.map((agent) => [agent.name, agent]))
  const base = builtins[0]
  for (const name of new Set([config, ownRules, projectRules, environmentRules].flatMap(Object.keys))) {
    const changes = Object.hasOwn(config, name) ? config[name] : undefined
    if (changes?.disable) {
      agents.delete(name)
      continue
    }
    const known = agents.get(name)
    const own: Agent = known ?? {
      name,
      description: `The agent "${name}" from the configuration.`,
      mode: "all",
      prompt: base?.prompt ?? "",
      steps: defaultSteps,
      permission: [],
    }
    const { disable: _, tools, ...fields } = changes ?? {}
    const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    agents.set(name, {
      ...own,
      ...set,
      permission: rulesOf(ownRules, name),
      projectPermission: rulesOf(projectRules, name),
      environmentPermission: rulesOf(environmentRules, name),
      tools: tools ? toolBounds(name, tools) : own.tools,
    })
  }
  return agents
}

function rulesOf(rules: RulesByAgent, name: string): Ruleset {
  return (Object.hasOwn(rules, name) ? rules[name] : undefined) ?? []
}

/** Names of permissions that an agent's `tools` setting does not restrict. */
const questions = ["external_directory", "doom_loop"]

function toolBounds(agent: string, tools: Readonly<Record<string, boolean>>): Ruleset {
  const rule = (permission: string, allowed: boolean): Rule => ({
    permission,
    pattern: "*",
    action: allowed ? "allow" : "deny",
    source: { file: `the "tools" setting of the agent ${agent}` },
  })
  const listed = Object.entries(tools)
  // Several tools can share a permission, such as write and edit. Removing one of them removes them all.
  const removed = listed.filter(([id, allowed]) => !allowed && !id.includes("*"))
  return [
    rule("*", true),
    ...[...listed, ...removed].map(([id, allowed]) => rule(id, allowed)),
    ...questions.map((name) => rule(name, true)),
  ]
}
