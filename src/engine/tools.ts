import type { Agent } from "../agent/agent.ts"
import { contain } from "../call/escaped-errors.ts"
import type { ProgramHost } from "../external-tool/program.ts"
import type { McpPool, PooledTool } from "../mcp/client/pool.ts"
import type { Plugins } from "../plugin/plugins.ts"
import {
  type LiveToolFiles,
  namedToolFiles,
  openToolFiles,
  type ToolFileSource,
} from "../registry/live-tool-files.ts"
import type { ToolFileHost } from "../registry/load-tool-file.ts"
import type { RegisteredTool } from "../registry/registered-tool.ts"
import { createRegistry, type Registry } from "../registry/registry.ts"
import type { Session } from "../schema/session.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Skill } from "../skill/skill.ts"
import type { Features } from "../tools/availability.ts"
import { type BuiltinOptions, type BuiltinTool, builtinTools } from "../tools/index.ts"
import type { SearchBackend } from "../tools/web/choose-search.ts"
import { TackleError } from "../util/errors.ts"
import { type ModuleAliases, resolveFrom } from "../util/load-module.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import { perCommand, programVariables } from "./command-variables.ts"
import type { Agents } from "./definitions.ts"
import type { TackleOptions } from "./options.ts"
import type { AgentAccess } from "./policies.ts"

/** Sources of tools other than the options, and the services that tools use. */
export interface ToolSources {
  directory: string
  /** Environment variables for the programs that tools start. */
  variables: Readonly<Record<string, string | undefined>>
  /** Directory for private copies of trusted programs. */
  programs: string
  record: ProcessJournal["add"]
  hasSandbox: boolean
  features: Features
  search: SearchBackend
  access: AgentAccess
  skills: ReadonlyMap<string, Skill>
  plugins: Plugins | undefined
  mcp: McpPool | undefined
  onProblem(message: string, error: unknown): void
}

/**
 * Opens the registry of all tools: built-in tools, and tools from the options, plugins, files and MCP servers. A file
 * that cannot be used becomes one of the registry's problems.
 */
export async function openRegistry(options: TackleOptions, sources: ToolSources): Promise<Registry> {
  const { plugins, mcp, onProblem } = sources
  const files = openCustomTools(options.toolFiles, programHost(sources), onProblem)
  await files?.read()
  return createRegistry({
    tools: [
      ...builtinTools(builtinOptions(options, sources)).map(fromBuiltin),
      ...(options.tools ?? []).map((tool) => ({ tool, source: { kind: "library" } as const })),
      ...(plugins?.tools ?? []).map(fromPlugin),
    ],
    problems: plugins?.problems ?? [],
    onProblem: ({ file, message }) =>
      onProblem(file, new TackleError(message, { code: "tool.file", recoverable: true })),
    files,
    dynamic: mcp && (async () => (await mcp.tools()).map(fromMcp)),
    override: options.override ?? [],
    disabled: new Set(options.disabledTools),
  })
}

function programHost({ directory, variables, programs, record }: ToolSources): ProgramHost {
  return { directory, copies: programs, environment: programVariables(variables), record }
}

function builtinOptions({ shell }: TackleOptions, sources: ToolSources): BuiltinOptions {
  const { variables, record, hasSandbox, features, search, access, skills, plugins } = sources
  return {
    bash: {
      environment: perCommand(variables, plugins),
      shell,
      sandboxed: hasSandbox,
      record,
    },
    task: { subagents: access.subagents },
    skills: { offered: access.skills, find: (name) => skills.get(name) },
    features,
    search,
  }
}

/** Opens the files of custom tools. Errors that escape from a tool's code go to `onProblem`. */
function openCustomTools(
  given: TackleOptions["toolFiles"] = [],
  programs: ProgramHost,
  onProblem: (message: string, error: unknown) => void,
): LiveToolFiles | undefined {
  const source = isSource(given) ? given : namedToolFiles(given)
  if (!source) return undefined
  // Finds the aliases lazily, because this takes longer than the rest of the function.
  let aliases: ModuleAliases | undefined
  const host: ToolFileHost = {
    programs,
    contain: (work) => contain(work, (error) => onProblem("uncaught error in a tool file", error)),
    get aliases() {
      aliases ??= toolAliases()
      return aliases
    },
  }
  return openToolFiles(source, host)
}

function isSource(given: NonNullable<TackleOptions["toolFiles"]>): given is ToolFileSource {
  return "find" in given && "watched" in given
}

function fromBuiltin({ tool, unavailable }: BuiltinTool): RegisteredTool {
  return { tool, source: { kind: "builtin" }, unavailableReason: ({ model }) => unavailable(model) }
}

function fromPlugin({ tool, plugin }: Plugins["tools"][number]): RegisteredTool {
  return { tool, source: { kind: "plugin", plugin } }
}

function fromMcp({ tool, server }: PooledTool): RegisteredTool {
  return { tool, source: { kind: "mcp", server } }
}

/** Returns the modules that custom tools and plugins may import without installing them. */
export function toolAliases(): ModuleAliases {
  const zod = resolveFrom(import.meta.url, "zod")
  const own = ownModule("tool/index")
  return {
    ...(own === undefined ? {} : { "tackle/tool": own, tackle: own }),
    ...(zod === undefined ? {} : { zod }),
    ...pluginAliases(),
  }
}

/**
 * Returns the replacements for OpenCode's own packages. The replacements also apply to plugins that have these packages
 * installed.
 */
export function pluginAliases(): ModuleAliases {
  const own = ownModule("plugin/index")
  return own === undefined
    ? {}
    : { "tackle/plugin": own, "@opencode-ai/plugin": own, "@opencode-ai/plugin/tool": own }
}

/**
 * Returns the URL of one of Tackle's modules. Searches the sources, the library, and the library next to the command.
 */
function ownModule(name: string): string | undefined {
  return (
    resolveFrom(import.meta.url, `../${name}.ts`) ??
    resolveFrom(import.meta.url, `../${name}.js`) ??
    resolveFrom(import.meta.url, `../lib/${name}.js`)
  )
}

/** Reasons why tools are unavailable regardless of the rules, keyed by tool id. */
export type UnavailableTools = Record<string, string>

/** Facts that determine which tools are available. */
export interface Availability {
  agents: Pick<Agents, "all">
  access: Pick<AgentAccess, "skills">
  lineage: Pick<Lineage, "above">
  /** Maximum subagent depth. */
  depth: number
  /** Whether plan mode is on. */
  plans: boolean
  /** Returns true while the host answers the model's questions. */
  answered(): boolean
}

/** Returns a function that lists the tools that cannot work for an agent. The function accepts an optional session. */
export function createUnavailableTools({ agents, access, lineage, depth, plans, answered }: Availability) {
  const disabled = (name: string) => (agents.all.has(name) ? undefined : `the agent ${name} is disabled`)

  return (agent: Agent, session?: Session): UnavailableTools => {
    const reasons: UnavailableTools = {}
    if (session && lineage.above(session).length >= depth)
      reasons.task = `subagents are limited to depth ${depth} by subagent.depth in the config`
    if (access.skills(agent.name).length === 0) reasons.skill = "this agent has no skills"
    const silent = answered() ? undefined : noUser
    if (silent !== undefined) reasons.question = silent
    if (!plans) return reasons
    const fixed =
      silent ?? (session?.parentID === undefined ? undefined : "a subagent cannot change the mode")
    const enter = fixed ?? (agent.plans ? "the session is already in plan mode" : disabled("plan"))
    const exit = fixed ?? (agent.plans ? disabled("build") : "the session is not in plan mode")
    if (enter !== undefined) reasons.plan_enter = enter
    if (exit !== undefined) reasons.plan_exit = exit
    return reasons
  }
}

/** Reason why tools that ask the user are not offered. */
export const noUser = "no user is present to answer"

/** The reasons why tools that work only in a session are otherwise unavailable. */
export const onlyInSessions: UnavailableTools = Object.fromEntries(
  ["task", "plan_enter", "plan_exit", "tool_search"].map((id) => [
    id,
    "it works only in a session, such as one that `tackle run` starts",
  ]),
)

/** The reasons that a list of all tools shows for tools that are offered only under certain conditions. */
export const onlyForManyTools: UnavailableTools = {
  tool_search:
    "it is offered only if the definitions of third-party tools exceed the limit that tool_search.maxBytes sets",
}
