import type { Agent } from "../../agent/agent.ts"
import { builtinAgents } from "../../agent/builtin.ts"
import { wholeName } from "../../config/shown-name.ts"
import { modelName } from "../../model/model.ts"
import type { Rule, Ruleset } from "../../schema/permission.ts"
import { UsageError } from "../../util/errors.ts"
import { displayPath } from "../../util/paths.ts"
import { openTackle } from "../open-tackle.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { placeOfRule } from "../shadowed-rules.ts"
import { oneLine, visible } from "../view/visible.ts"

/** `all`: hidden agents too. */
export interface AgentListFlags extends FormatFlags {
  all?: boolean
}

/** An agent for people and programs: where it comes from, and all that counts of it. */
interface ShownAgent {
  name: string
  builtin: boolean
  /** Where the configuration speaks of it last. */
  source?: { file: string; line: number }
  description: string
  mode: Agent["mode"]
  model?: string
  temperature?: number
  steps: number
  hidden: boolean
  /** Its tools as written. Absent: all. */
  tools?: Readonly<Record<string, boolean>>
  permission: Ruleset
  /** Rules that the project brings, which lift no deny. */
  projectPermission: Ruleset
  /** Rules of the environment, over both. */
  environmentPermission: Ruleset
  prompt: string
}

/** `tackle agent list`. */
export async function listAgents(flags: AgentListFlags): Promise<void> {
  const { place, agents } = await shownAgents(flags)
  const listed = agents.filter(({ hidden }) => flags.all || !hidden)
  if (flags.format === "json") return printJson({ agents: listed })
  const room = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
  const origins = listed.map((agent) => wholeName(`${agent.mode}, ${sourceOf(agent, place)}`))
  const nameWidth = widest(listed.map(({ name }) => name))
  const originWidth = widest(origins)
  for (const [index, agent] of listed.entries()) {
    const head = `${agent.name.padEnd(nameWidth)}  ${(origins[index] ?? "").padEnd(originWidth)}`
    const left = room - head.length - 2
    if (left >= shortest) printLine(`${head}  ${oneLine(agent.description, left)}`.trimEnd())
    else for (const line of [head.trimEnd(), `  ${oneLine(agent.description, room - 2)}`]) printLine(line)
  }
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => text.length))
}

/** A description with less room than this, in columns, has a line of its own. */
const shortest = 30

/** `tackle agent show <name>`. Throws `UsageError` for a name that no agent has. */
export async function showAgent(name: string, flags: FormatFlags): Promise<void> {
  const { place, agents } = await shownAgents(flags)
  const agent = agents.find((each) => each.name === name)
  if (!agent) {
    const known = agents.map((each) => each.name).join(", ")
    throw new UsageError(`There is no agent "${name}". Known: ${known}.`)
  }
  if (flags.format === "json") return printJson(agent)
  const { tools = {}, model = "that of the run", temperature = "that of the model" } = agent
  const listed = Object.entries(tools).map(([id, on]) => `${on ? "" : "not "}${id}`)
  const lines: [string, unknown][] = [
    ["name", agent.name],
    ["from", sourceOf(agent, place)],
    ["for", agent.description],
    ["mode", agent.mode],
    ["model", model],
    ["temperature", temperature],
    ["steps", agent.steps],
    ["tools", listed.length === 0 ? "all" : listed.join(", ")],
  ]
  for (const [key, value] of lines) printLine(`${key.padEnd(11)} ${wholeName(String(value))}`)
  for (const rule of agent.permission) printLine(describeRule(rule))
  for (const rule of agent.projectPermission) printLine(`${describeRule(rule)}   lifts no deny`)
  for (const rule of agent.environmentPermission) printLine(describeRule(rule))
  printLine(`\n${visible(agent.prompt)}`)
}

async function shownAgents(flags: FormatFlags): Promise<{ place: Place; agents: ShownAgent[] }> {
  const place = await openPlace(flags)
  const tackle = await openTackle(place, {})
  try {
    const agents = [...tackle.agents.values()].map((agent) => shown(agent, place))
    return { place, agents: place.hide(agents) }
  } finally {
    await tackle.close()
  }
}

const builtins = new Set(builtinAgents().map(({ name }) => name))

function shown(agent: Agent, { config }: Place): ShownAgent {
  const { name, description, mode, model, temperature, steps, permission, prompt } = agent
  const source = config.origin(["agent", name])
  const tools = config.config.agent?.[name]?.tools
  return {
    name,
    builtin: builtins.has(name),
    ...(source === undefined ? {} : { source }),
    description,
    mode,
    ...(model === undefined ? {} : { model: modelName(model) }),
    ...(temperature === undefined ? {} : { temperature }),
    steps,
    hidden: agent.hidden ?? false,
    ...(tools === undefined ? {} : { tools }),
    permission,
    projectPermission: agent.projectPermission ?? [],
    environmentPermission: agent.environmentPermission ?? [],
    prompt,
  }
}

function sourceOf({ builtin, source }: ShownAgent, { worktree }: Place): string {
  const file = source && displayPath(source.file, worktree)
  if (!builtin) return file ?? "the rules of the configuration"
  return file === undefined ? "built in" : `built in, changed by ${file}`
}

function describeRule(rule: Rule): string {
  const place = placeOfRule(rule)
  const what = `${wholeName(rule.permission)}: ${wholeName(rule.pattern)}`
  return `${rule.action.padEnd(11)} ${what}${place === "" ? "" : `   (${wholeName(place)})`}`
}
