import { join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import { type Command, InvalidArgumentError, Option } from "commander"
import type { Agent } from "../../agent/agent.ts"
import { builtinAgents } from "../../agent/builtin.ts"
import { ConfigError } from "../../config/errors.ts"
import { userDirectory } from "../../config/location.ts"
import { isMarkdownName } from "../../config/markdown-files.ts"
import { readLayer } from "../../config/read-layer.ts"
import { wholeName } from "../../config/shown-name.ts"
import { modelName } from "../../model/model.ts"
import { knownPermissions } from "../../permission/permission-names.ts"
import { permissionType } from "../../permission/rules.ts"
import type { Ruleset } from "../../schema/permission.ts"
import { UsageError } from "../../util/errors.ts"
import { writeFrontMatter } from "../../util/front-matter.ts"
import { displayPath } from "../../util/paths.ts"
import { didYouMean } from "../../util/similarity.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import { oneLine, visible } from "../../view/visible.ts"
import { interruptible } from "../process/exit.ts"
import { atTerminal, question } from "../process/question.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { withTackle } from "../workspace/engine.ts"
import { assertInside, writeNewFile } from "../workspace/new-file.ts"
import { keepTrust } from "../workspace/recheck-trust.ts"
import { customTools, describeRule } from "../workspace/rules.ts"
import { type FormatFlags, openWorkspace, type Workspace } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, positive, projectFlags } from "./flags.ts"

/** Defines `tackle agent` and its subcommands. */
export function defineAgent(agent: Command): void {
  projectFlags(agent.command("list"))
    .description("list the agents and where they are defined")
    .option("--all", "include hidden agents")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listAgents)
  projectFlags(agent.command("show"))
    .description("show an agent with its prompt, tools and rules")
    .argument("<name>", "name of the agent")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(showAgent)
  projectFlags(agent.command("create"))
    .description(
      "create a Markdown file for a new agent; in a terminal, asks for a missing name, description or prompt",
    )
    .argument("[name]", "name of the agent")
    .option("--description <text>", "purpose of the agent; tells other agents when to use it")
    .option("--prompt <text>", 'system prompt; "-" reads stdin')
    .addOption(
      new Option("--mode <mode>", "primary: for users; subagent: for other agents; all: for both").choices([
        "primary",
        "subagent",
        "all",
      ]),
    )
    .option("-m, --model <name>", "model to use, as provider/model")
    .option("--temperature <number>", "sampling temperature", number)
    .option("--steps <n>", "maximum model steps per prompt", positive)
    .option("--tools <ids>", "comma-separated ids of the agent's tools (default: all)")
    .option("--user", "create the agent for all your projects, not only for this one")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(createAgent)
}

function number(value: string): number {
  const read = Number(value)
  if (value.trim() === "" || !Number.isFinite(read))
    throw new InvalidArgumentError("The value must be a number.")
  return read
}

/** Flags for `tackle agent list`. If `all` is true, hidden agents are included. */
export interface AgentListFlags extends FormatFlags {
  all?: boolean
}

/** An agent with its origin and its settings. */
interface ShownAgent {
  name: string
  builtin: boolean
  /** Location in the highest-precedence file that defines or changes the agent. Absent if no file does. */
  source?: { file: string; line: number }
  description: string
  mode: Agent["mode"]
  model?: string
  temperature?: number
  steps: number
  hidden: boolean
  /** The agent's `tools` setting, keyed by tool id or pattern. Absent if it is not set. */
  tools?: Readonly<Record<string, boolean>>
  permission: Ruleset
  /** The project's rules. They cannot override a `deny` rule from another source. */
  projectPermission: Ruleset
  /** Rules from the environment, applied after `permission` and `projectPermission`. */
  environmentPermission: Ruleset
  prompt: string
}

/** Runs `tackle agent list`. */
export async function listAgents(flags: AgentListFlags): Promise<void> {
  const { workspace, agents } = await shownAgents(flags)
  const listed = agents.filter(({ hidden }) => flags.all || !hidden)
  if (flags.format === "json") return printJson({ agents: listed })
  const room = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
  const origins = listed.map((agent) => wholeName(`${agent.mode}, ${sourceOf(agent, workspace)}`))
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

/** Minimum width, in columns, of a description on the same line as the name. */
const shortest = 30

/** Runs `tackle agent show <name>`. Throws `UsageError` for an unknown name. */
export async function showAgent(name: string, flags: FormatFlags): Promise<void> {
  const { workspace, agents } = await shownAgents(flags)
  const agent = agents.find((each) => each.name === name)
  if (!agent) {
    const known = agents.map((each) => each.name).join(", ")
    throw new UsageError(`The agent "${name}" does not exist. Available agents: ${known}.`)
  }
  if (flags.format === "json") return printJson(agent)
  const { tools = {}, model = "the run's model", temperature = "the model's default" } = agent
  const listed = Object.entries(tools).map(([id, on]) => `${on ? "" : "not "}${id}`)
  const lines: [string, unknown][] = [
    ["name", agent.name],
    ["from", sourceOf(agent, workspace)],
    ["purpose", agent.description],
    ["mode", agent.mode],
    ["model", model],
    ["temperature", temperature],
    ["steps", agent.steps],
    ["tools", listed.length === 0 ? "all that the rules allow" : listed.join(", ")],
  ]
  for (const [key, value] of lines) printLine(`${key.padEnd(11)} ${wholeName(String(value))}`)
  for (const rule of agent.permission) printLine(describeRule(rule, 11))
  for (const rule of agent.projectPermission)
    printLine(`${describeRule(rule, 11)}   cannot override a deny rule`)
  for (const rule of agent.environmentPermission) printLine(describeRule(rule, 11))
  printLine(`\n${visible(agent.prompt)}`)
}

async function shownAgents(flags: FormatFlags): Promise<{ workspace: Workspace; agents: ShownAgent[] }> {
  const workspace = await openWorkspace(flags)
  const agents = await withTackle(workspace, async (tackle) =>
    [...tackle.agents.values()].map((agent) => shown(agent, workspace)),
  )
  return { workspace, agents: workspace.hide(agents) }
}

const builtins = new Set(builtinAgents().map(({ name }) => name))

function shown(agent: Agent, { config }: Workspace): ShownAgent {
  const { name, description, mode, model, temperature, steps, permission, prompt, problem } = agent
  const source = config.origin(["agent", name])
  const tools = config.config.agent?.[name]?.tools
  return {
    name,
    builtin: builtins.has(name),
    source,
    description: problem === undefined ? description : `cannot run: ${problem}`,
    mode,
    model: model === undefined ? undefined : modelName(model),
    temperature,
    steps,
    hidden: agent.hidden ?? false,
    tools,
    permission,
    projectPermission: agent.projectPermission ?? [],
    environmentPermission: agent.environmentPermission ?? [],
    prompt,
  }
}

function sourceOf({ builtin, source }: ShownAgent, { worktree }: Workspace): string {
  const file = source && displayPath(source.file, worktree)
  if (!builtin) return file ?? "rules in the config"
  return file === undefined ? "built in" : `built in, changed by ${file}`
}

/**
 * Flags for `tackle agent create`. They set the fields of the new file. In a terminal, the command asks for a missing
 * description or prompt. Other fields are omitted if their flags are not set.
 */
export interface AgentCreateFlags extends FormatFlags {
  description?: string
  /** System prompt of the agent. `-` reads it from stdin. */
  prompt?: string
  mode?: Agent["mode"]
  model?: string
  temperature?: number
  steps?: number
  /** Comma-separated ids of the tools. Default: all tools. */
  tools?: string
  /** If true, the file is created in the user's directory instead of the project's. */
  user?: boolean
}

/**
 * Runs `tackle agent create [name]`, which writes the file for a new agent and never changes an existing file. In a
 * terminal, asks for a missing name, description or prompt. Throws `UsageError` for invalid or missing values, and if
 * the agent already exists.
 */
export async function createAgent(given: string | undefined, flags: AgentCreateFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const name = (given ?? (await ask("the agent's name", "Name of the agent"))).trim()
  checkName(name, workspace)
  const ids = toolIDs(flags.tools)
  if (ids) await checkTools(ids, workspace)
  const description = flags.description ?? (await ask("--description", "What is the agent's purpose?"))
  const prompt = flags.prompt === "-" ? await readAll(process.stdin) : (flags.prompt ?? (await askPrompt()))
  const { mode, model, temperature, steps } = flags
  const tools = ids && Object.fromEntries([["*", false], ...ids.map((id) => [id, true])])
  const fields = { description, mode, model, temperature, steps, tools }
  const content = writeFrontMatter(fields, prompt)

  const directory = join(
    flags.user ? join(userDirectory(workspace), "tackle") : join(workspace.worktree, ".tackle"),
    "agent",
  )
  const file = join(directory, `${name}.md`)
  const scope = flags.user ? "user" : "project"
  // Parses the new text before writing it, to make sure that Tackle can load the file.
  const source = { path: file, kind: "tackle", scope, text: content, hash: "", trusted: true } as const
  const { problems } = await readLayer(source, workspace)
  if (problems.length > 0) throw new ConfigError(problems)
  if (!flags.user) assertInside(directory, workspace.worktree)
  writeNewFile(file, content)
  const trusted = flags.user || (await keepTrust(workspace, file))

  if (flags.format === "json") return printJson({ name, file, scope })
  const shown = wholeName(displayPath(file, workspace.worktree))
  printLine(`Wrote ${shown}.`)
  if (!trusted) printHint(`To use the agent, trust it: tackle trust ${shown}`)
}

function checkName(name: string, { config }: Workspace): void {
  if (!isMarkdownName(name)) {
    throw new UsageError(
      `Invalid agent name "${name}". A name has at most 128 characters. Each part between "/" or ":" must start with a letter or digit and contain only letters, digits, ".", "_" and "-".`,
    )
  }
  const source = config.origin(["agent", name])
  if (source)
    throw new UsageError(`The agent ${name} already exists. Edit it in ${source.file}:${source.line}.`)
  if (builtinAgents().some((agent) => agent.name === name)) {
    throw new UsageError(`The agent ${name} is built in. To change it, add agent.${name} to the config.`)
  }
}

async function ask(missing: string, message: string): Promise<string> {
  if (!atTerminal())
    throw new UsageError(`Pass ${missing}, because Tackle cannot ask for it without a terminal.`)
  const validate = (value: string | undefined) => (value?.trim() ? undefined : "The text cannot be empty.")
  const answer = await question(({ text }, signal) =>
    text({ message, validate, output: process.stderr, signal }),
  )
  if (answer === undefined) throw new UsageError("Nothing was written.")
  return answer
}

/**
 * Asks for the agent's prompt. Returns an empty text without a terminal. An agent with an empty prompt uses `build`'s.
 */
async function askPrompt(): Promise<string> {
  if (!atTerminal()) return ""
  const answer = await question(({ text }, signal) =>
    text({
      message: "System prompt (leave empty to use the build agent's prompt; you can edit the file later)",
      output: process.stderr,
      signal,
    }),
  )
  if (answer === undefined) throw new UsageError("Nothing was written.")
  return answer ?? ""
}

function toolIDs(list: string | undefined): string[] | undefined {
  return list
    ?.split(",")
    .map((id) => id.trim())
    .filter((id) => id !== "")
}

/**
 * Throws `UsageError` for an unknown tool id. Loads the tools only if an id does not belong to a built-in tool, a tool
 * file or an MCP server.
 */
async function checkTools(ids: readonly string[], workspace: Workspace): Promise<void> {
  const isCustom = customTools(workspace)
  const isKnown = (id: string) => knownPermissions.includes(permissionType(id)) || isCustom(id)
  const open = ids.filter((id) => id !== "*" && !isKnown(id))
  if (open.length === 0) return
  const tools = (await offeredTools(workspace)).filter((id) => id !== "invalid")
  const wrong = open.find((id) => !tools.some((tool) => wildcardMatch(tool, id)))
  if (wrong === undefined) return
  const hint = didYouMean(wrong, tools) ?? `Available tools: ${tools.join(", ")}.`
  throw new UsageError(`Unknown tool "${wrong}" in --tools. ${hint}`)
}

function offeredTools(workspace: Workspace): Promise<string[]> {
  return interruptible((signal) =>
    withTackle(workspace, async (tackle) => (await tackle.tools({ signal })).map(({ id }) => id)),
  )
}
