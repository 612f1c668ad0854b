import type { ModelRef } from "../schema/message.ts"
import type { Rule, Ruleset } from "../schema/permission.ts"

/** A prompt, a model, and what the agent may do. */
export interface Agent {
  name: string
  description: string
  /** `primary` talks to the user, `subagent` is started by another agent, `all` does both. */
  mode: "primary" | "subagent" | "all"
  /** The first part of the system prompt. */
  prompt: string
  model?: ModelRef
  temperature?: number
  /** Maximum number of model steps per prompt. */
  steps: number
  /** Rules of the user's config for this agent: one layer of the policy. */
  permission: Ruleset
  /** Rules of the project, applied over those. They never lift a deny or the ceiling. */
  projectPermission?: Ruleset
  /** Rules of the user's environment, applied over both. */
  environmentPermission?: Ruleset
  /** Bounds of a built-in agent. The stricter of these and the policy applies. */
  ceiling?: Ruleset
  /** The tools of the agent, as bounds that no rule lifts. */
  tools?: Ruleset
  /** Not listed for users. */
  hidden?: boolean
  /** Commands run only in a sandbox, regardless of the config. */
  sandbox?: "require"
  /** In plan mode the agent may write only the plan file of the session. */
  plans?: true
}

/** The settings of an agent in a config. */
export interface AgentConfig {
  description?: string | undefined
  mode?: Agent["mode"] | undefined
  prompt?: string | undefined
  model?: ModelRef | undefined
  temperature?: number | undefined
  steps?: number | undefined
  /** Tools by id or pattern. False removes a tool. True allows nothing that the rules do not allow. */
  tools?: Readonly<Record<string, boolean>> | undefined
  hidden?: boolean | undefined
  disable?: boolean | undefined
}

/** The default step limit. */
export const defaultSteps = 100

type RulesByAgent = Readonly<Record<string, Ruleset>>

/** Permission rules by agent name: of the user, the project and the environment. */
export interface AgentRules {
  own?: RulesByAgent | undefined
  project?: RulesByAgent | undefined
  environment?: RulesByAgent | undefined
}

/**
 * Returns the built-in agents with the changes of the config, and the agents of the config. A name that occurs only in
 * rules defines an agent too. Agents with `disable` are omitted.
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

/** Permissions that are not tools: a list of tools does not restrict them. */
const questions = ["external_directory", "doom_loop"]

function toolBounds(agent: string, tools: Readonly<Record<string, boolean>>): Ruleset {
  const rule = (permission: string, allowed: boolean): Rule => ({
    permission,
    pattern: "*",
    action: allowed ? "allow" : "deny",
    source: { file: `the tools of the agent ${agent}` },
  })
  const listed = Object.entries(tools)
  // Removing one of several tools with the same permission, such as write and edit, removes them all.
  const removed = listed.filter(([id, allowed]) => !allowed && !id.includes("*"))
  return [
    rule("*", true),
    ...[...listed, ...removed].map(([id, allowed]) => rule(id, allowed)),
    ...questions.map((name) => rule(name, true)),
  ]
}
