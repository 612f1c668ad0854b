import type { ModelRef } from "../schema/message.ts"
import type { Rule, Ruleset } from "../schema/permission.ts"

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
  /** Rules that a project has for the agent, over those: they lift no deny and no ceiling. */
  projectPermission?: Ruleset
  /** Rules of the person's environment for the agent, over both. */
  environmentPermission?: Ruleset
  /** A built-in agent's own bounds: the stricter of this and the policy holds. */
  ceiling?: Ruleset
  /** Which tools it has at all, as bounds that no rule lifts. */
  tools?: Ruleset
  /** Left out of lists for people. */
  hidden?: boolean
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
  /** Tools by id or pattern: false takes one away. True allows nothing that rules do not. */
  tools?: Readonly<Record<string, boolean>> | undefined
  hidden?: boolean | undefined
  disable?: boolean | undefined
}

/** The step limit of an agent that names none (`SPEC` of the loop: 100). */
export const defaultSteps = 100

type RulesByAgent = Readonly<Record<string, Ruleset>>

/** The agents' permission rules by name: the person's own, those of a project, and those of the environment. */
export interface AgentRules {
  own?: RulesByAgent | undefined
  project?: RulesByAgent | undefined
  environment?: RulesByAgent | undefined
}

/**
 * Built-in agents with the config's changes over them, and the config's own agents. An agent that only rules name is
 * one too. Agents with `disable` are left out.
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
      description: `The agent "${name}" of the configuration.`,
      mode: "all",
      prompt: base?.prompt ?? "",
      steps: defaultSteps,
      permission: [],
    }
    const { disable: _, tools, ...fields } = changes ?? {}
    const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    const projectPermission = rulesOf(projectRules, name)
    const environmentPermission = rulesOf(environmentRules, name)
    agents.set(name, {
      ...own,
      ...set,
      permission: rulesOf(ownRules, name),
      ...(projectPermission.length > 0 ? { projectPermission } : {}),
      ...(environmentPermission.length > 0 ? { environmentPermission } : {}),
      ...(tools === undefined ? {} : { tools: toolBounds(name, tools) }),
    })
  }
  return agents
}

function rulesOf(rules: RulesByAgent, name: string): Ruleset {
  return (Object.hasOwn(rules, name) ? rules[name] : undefined) ?? []
}

/** What is asked for beside tools, which a list of tools does not mean. */
const questions = ["external_directory", "doom_loop"]

function toolBounds(agent: string, tools: Readonly<Record<string, boolean>>): Ruleset {
  const rule = (permission: string, allowed: boolean): Rule => ({
    permission,
    pattern: "*",
    action: allowed ? "allow" : "deny",
    source: { file: `the tools of the agent ${agent}` },
  })
  const listed = Object.entries(tools)
  // Of tools that ask for the same thing, such as write and edit, none is left where one is taken away by name.
  const taken = listed.filter(([id, allowed]) => !allowed && !id.includes("*"))
  return [
    rule("*", true),
    ...[...listed, ...taken].map(([id, allowed]) => rule(id, allowed)),
    ...questions.map((name) => rule(name, true)),
  ]
}
