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
import type { RegisteredTool } from "../registry/registered-tool.ts"
import { createRegistry, type Registry } from "../registry/registry.ts"
import type { Skill } from "../skill/skill.ts"
import type { Features } from "../tools/availability.ts"
import { type BuiltinOptions, type BuiltinTool, builtinTools } from "../tools/index.ts"
import type { SearchBackend } from "../tools/web/choose-search.ts"
import { TackleError } from "../util/errors.ts"
import type { ModuleAliases } from "../util/load-module.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import { perCommand, programVariables } from "./command-variables.ts"
import { toolAliases } from "./module-aliases.ts"
import type { TackleOptions } from "./options.ts"
import type { AgentAccess } from "./policies.ts"

/** Sources of tools other than the options, and the services that tools use. */
export interface ToolSources {
  directory: string
  /** Environment variables of the programs that tools start. */
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

/** Opens the files of custom tools. Errors that escape the code of a tool go to `onProblem`. */
function openCustomTools(
  given: TackleOptions["toolFiles"] = [],
  programs: ProgramHost,
  onProblem: (message: string, error: unknown) => void,
): LiveToolFiles | undefined {
  const source = isSource(given) ? given : namedToolFiles(given)
  if (!source) return undefined
  // Finds the aliases lazily, because this takes longer than the rest of the function.
  let aliases: ModuleAliases | undefined
  const host = {
    programs,
    get aliases() {
      aliases ??= toolAliases()
      return aliases
    },
  }
  const files = openToolFiles(source, host)
  const onEscape = (error: unknown) => onProblem("uncaught error in a tool file", error)
  return { ...files, read: async () => (files.changed() ? contain(files.read, onEscape) : files.last()) }
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
