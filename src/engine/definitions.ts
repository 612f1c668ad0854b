import { type Agent, type AgentConfig, mergeAgents } from "../agent/agent.ts"
import { builtinAgents } from "../agent/builtin.ts"
import { plainRules } from "../config/rules.ts"
import type { Ruleset } from "../schema/permission.ts"
import { type Command, type CommandConfig, listCommands } from "../session/command.ts"
import type { Skill } from "../skill/skill.ts"
import { loadSkills, type SkillFile } from "../skill/skill.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { type Beginning, followFiles } from "../util/follow-files.ts"
import { canonicalJson, own } from "../util/json.ts"

/** An engine's agents. */
export interface Agents {
  /** The current agents, keyed by name. The map object stays the same when agents change. */
  readonly all: ReadonlyMap<string, Agent>
  /**
   * Returns the agent with this name. For a removed agent, returns the latest version, because its rules still apply to
   * its sessions. If the agent never existed, throws `UsageError` with the available names.
   */
  known(name: string): Agent
  /**
   * Returns the agent with this name. If it cannot run, throws `UsageError` with its problem. If it does not exist,
   * throws `UsageError` with the available names.
   */
  named(name: string): Agent
  /**
   * Returns the agent with this name. If the agent cannot run or does not exist or is not a subagent, throws `UsageError` with the
   * available names.
   */
  subagentNamed(name: string): Agent
  /** Returns the agents that another agent may start, sorted by name. */
  subagents(): Agent[]
  /** Replaces all agents. */
  replace(options: AgentOptions): void
}

/** The engine's options for agents and their rules. */
export interface AgentOptions {
  agents?: Readonly<Record<string, AgentConfig>>
  agentRules?: Readonly<Record<string, Ruleset>>
  /** The project's rules for agents. They can allow what another rule asks about, but cannot override a deny rule. */
  projectAgentRules?: Readonly<Record<string, Ruleset>>
  /** The user's additional rules for agents. They override the project's rules. */
  environmentAgentRules?: Readonly<Record<string, Ruleset>>
}

/** Everything that Markdown files can define: agents with their rules, commands and skills. */
export interface DefinitionSet extends AgentOptions {
  commands?: Readonly<Record<string, CommandConfig>>
  /** Skill files in ascending precedence: see `TackleOptions`. */
  skillFiles?: readonly (string | SkillFile)[]
}

/** Source of definitions. The engine reads it again whenever a watched file changes. */
export interface DefinitionSource {
  /**
   * Returns the absolute paths of the files and directories to watch, some of which may be missing. A change to any of
   * them triggers a new read. Each check costs one `stat` per path.
   */
  watched(): readonly string[]
  /** State of the files when the definitions in the options were read. If absent, the first use calls `find`. */
  begun?: Beginning
  /** Returns the current definitions, and the problems with definitions that cannot be used. */
  find(): Promise<DefinitionSet & { problems: readonly DefinitionProblem[] }>
}

/** The reason why a definition file cannot be used. */
export interface DefinitionProblem {
  file: string
  message: string
}

/** The current agents, commands and skills. */
export interface Definitions {
  agents: Agents
  /** The current skills, keyed by name. The map object stays the same when skills change. */
  skills: ReadonlyMap<string, Skill>
  commands(): Command[]
  /** Reads changed files again. Costs little if no file changed. Does not reject. */
  follow(): Promise<void>
  /** Calls the listener after every change to the definitions. */
  onChanged(listener: () => void): void
  /** Returns true if `follow` may find a change. Cheap enough to call at every step. */
  changedLately(): boolean
}

/**
 * Opens an engine's definitions. Changes that plugins made to agents (the difference between `given` and `options`) are
 * applied again when files change. Each problem in a changed file is reported once and does not affect other
 * definitions.
 */
export async function openDefinitions({
  options,
  given,
  source,
  onProblem,
}: {
  options: DefinitionSet
  given: DefinitionSet
  /** The source of the definitions. If undefined, the definitions never change. */
  source: DefinitionSource | undefined
  onProblem(message: string, error: unknown): void
}): Promise<Definitions> {
  const byPlugins = changesOf(given.agents, options.agents)
  const reported = new Set<string>()
  const listeners: (() => void)[] = []
  const agents = createAgents(options)
  const loaded = await loadSkills(options.skillFiles ?? [])
  const skills = new Map(loaded.skills)
  for (const problem of loaded.problems) report(problem)
  let commands = options.commands ?? {}
  const followed = source && followFiles<void>({ ...followedBy(source), initial: undefined })

  function followedBy({ watched, begun, find }: DefinitionSource) {
    return {
      watched,
      begun,
      async read() {
        const { problems, ...found } = await find()
        await take(found)
        for (const problem of problems) report(problem)
      },
      onFailure(error: unknown) {
        report({ file: "agents, commands and skills", message: errorMessage(error) })
      },
    }
  }

  async function take(found: DefinitionSet): Promise<void> {
    const loaded = await loadSkills(found.skillFiles ?? [])
    for (const problem of loaded.problems) report(problem)
    const { agents: _, ...rules } = withAgentRules(found)
    agents.replace({ ...rules, agents: { ...found.agents, ...byPlugins } })
    skills.clear()
    for (const [name, skill] of loaded.skills) skills.set(name, skill)
    commands = found.commands ?? {}
    for (const listener of listeners) listener()
  }

  function report({ file, message }: DefinitionProblem): void {
    const text = `${file}: ${message}`
    if (reported.has(text)) return
    reported.add(text)
    onProblem(file, new TackleError(message, { code: "definition.file", recoverable: true }))
  }

  return {
    agents,
    skills,
    commands: () => listCommands(commands, skills.values()),
    async follow() {
      await followed?.read()
    },
    onChanged: (listener) => void listeners.push(listener),
    changedLately: () => followed?.changedLately() ?? false,
  }
}

type AgentConfigs = NonNullable<AgentOptions["agents"]>

/** Returns the agents that plugins added, changed or removed. Removed agents are marked as disabled. */
function changesOf(given: AgentConfigs = {}, changed: AgentConfigs = {}): AgentConfigs {
  const others = Object.entries(changed).filter(
    ([name, agent]) => canonicalJson(agent) !== canonicalJson(own(given, name) ?? {}),
  )
  const gone = Object.keys(given).filter((name) => !Object.hasOwn(changed, name))
  return {
    ...Object.fromEntries(others),
    ...Object.fromEntries(gone.map((name) => [name, { disable: true }])),
  }
}

function usable(agent: Agent): Agent {
  if (agent.problem === undefined) return agent
  throw new UsageError(
    `The agent "${agent.name}" cannot run, because a part of its definition is invalid and may contain rules. ${agent.problem}`,
    undefined,
    "agent.invalid",
  )
}

/** Moves the rules of agents to `agentRules`, before the rules there. */
export function withAgentRules<T extends AgentOptions>(options: T): T {
  const { agents } = options
  if (!agents || !Object.values(agents).some(({ permission }) => permission !== undefined)) return options
  const agentRules: Record<string, Ruleset> = { ...options.agentRules }
  for (const [name, { permission }] of Object.entries(agents))
    if (permission !== undefined)
      agentRules[name] = [
        ...plainRules(permission, `agents.${name}.permission`).rules,
        ...(agentRules[name] ?? []),
      ]
  return { ...options, agents: withoutRules(agents), agentRules }
}

/** Returns the agents without their rules. */
export function withoutRules(agents: AgentOptions["agents"]): AgentOptions["agents"] {
  return (
    agents &&
    Object.fromEntries(
      Object.entries(agents).map(([name, agent]) => {
        if (typeof agent !== "object" || agent === null) return [name, agent]
        const { permission: _, ...rest } = agent
        return [name, rest]
      }),
    )
  )
}

/** Creates the built-in agents and the agents in the options, with their rules. */
function createAgents(options: AgentOptions): Agents {
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
    if (agent) return usable(agent)
    const known = [...all.keys()].join(", ")
    throw new UsageError(`Unknown agent "${name}". Available: ${known}.`, undefined, "agent.unknown")
  }

  const subagents = () =>
    [...all.values()]
      .filter(({ mode, problem }) => mode !== "primary" && problem === undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1))

  return {
    all,
    known: (name) => everKnown.get(name) ?? named(name),
    named,
    subagentNamed(name) {
      const agent = all.get(name)
      if (agent && agent.mode !== "primary") return usable(agent)
      const names = subagents().map((each) => each.name)
      throw new UsageError(`Unknown subagent "${name}". Available: ${names.join(", ") || "none"}.`)
    },
    subagents,
    replace,
  }
}
