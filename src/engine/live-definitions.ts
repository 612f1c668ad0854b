import { type Command, type CommandConfig, listCommands } from "../session/command.ts"
import { loadSkills, type SkillFile } from "../skill/load-skills.ts"
import type { Skill } from "../skill/skill.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { type Beginning, followFiles } from "../util/follow-files.ts"
import { canonicalJson } from "../util/json.ts"
import { type AgentOptions, type Agents, createAgents } from "./agents.ts"

/** What is defined in Markdown: agents with their rules, commands, and skills. */
export interface Definitions extends AgentOptions {
  commands?: Readonly<Record<string, CommandConfig>>
  /** In rising precedence: see `TackleOptions`. */
  skillFiles?: readonly (string | SkillFile)[]
}

/** Where definitions come from, asked again whenever something there has changed. */
export interface DefinitionSource {
  /** Absolute paths of files and directories, there or not, whose change makes it worth looking again: one `stat` each. */
  watched(): readonly string[]
  /** From what the definitions of the options were read. */
  begun: Beginning
  /** All that counts now, and what is to be said of what does not. */
  find(): Promise<Definitions & { problems: readonly DefinitionProblem[] }>
}

/** Why a file does not count, in words for people. */
export interface DefinitionProblem {
  file: string
  message: string
}

/** Agents, commands and skills as they are now. */
export interface LiveDefinitions {
  agents: Agents
  /** The same map, whatever becomes of them. */
  skills: ReadonlyMap<string, Skill>
  commands(): Command[]
  /** Brings all of them up to date with their files. Cheap where nothing changed. Does not reject. */
  follow(): Promise<void>
  /** Has the listener called whenever they have become others. */
  onChanged(listener: () => void): void
  /** True between steps where `follow` may find something. Cheap. */
  changedLately(): boolean
}

/**
 * The definitions of an engine. What plugins made of the agents (`options` against `given`) stays, whatever becomes of the
 * files. A fault is told once, and leaves all as it was.
 */
export async function openDefinitions({
  options,
  given,
  source,
  onProblem,
}: {
  options: Definitions
  given: Definitions
  /** Absent: nothing changes. */
  source: DefinitionSource | undefined
  onProblem(message: string, error: unknown): void
}): Promise<LiveDefinitions> {
  const byPlugins = changesOf(given.agents, options.agents)
  const told = new Set<string>()
  const listeners: (() => void)[] = []
  const agents = createAgents(options)
  const skills = new Map((await loadSkills(options.skillFiles ?? [])).skills)
  let commands = options.commands ?? {}
  const followed = source && followFiles<void>({ ...followedBy(source), initial: undefined })

  function followedBy({ watched, begun, find }: DefinitionSource) {
    return {
      watched,
      begun,
      async read() {
        const { problems, ...found } = await find()
        await take(found)
        for (const problem of problems) tell(problem)
      },
      onFailure(error: unknown) {
        tell({ file: "agents, commands and skills", message: errorMessage(error) })
      },
    }
  }

  async function take(found: Definitions): Promise<void> {
    const loaded = await loadSkills(found.skillFiles ?? [])
    for (const problem of loaded.problems) tell(problem)
    agents.replace({ ...found, agents: { ...found.agents, ...byPlugins } })
    skills.clear()
    for (const [name, skill] of loaded.skills) skills.set(name, skill)
    commands = found.commands ?? {}
    for (const listener of listeners) listener()
  }

  function tell({ file, message }: DefinitionProblem): void {
    const text = `${file}: ${message}`
    if (told.has(text)) return
    told.add(text)
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

/** What others made of the agents: those that are new or another, and those that are gone. */
function changesOf(given: AgentConfigs = {}, changed: AgentConfigs = {}): AgentConfigs {
  const others = Object.entries(changed).filter(
    ([name, agent]) => canonicalJson(agent) !== canonicalJson(given[name] ?? {}),
  )
  const gone = Object.keys(given).filter((name) => !Object.hasOwn(changed, name))
  return {
    ...Object.fromEntries(others),
    ...Object.fromEntries(gone.map((name) => [name, { disable: true }])),
  }
}
