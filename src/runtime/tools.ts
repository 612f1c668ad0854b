import { type BuiltinOptions, type BuiltinTool, builtinTools } from "../builtin/index.ts"
import type { ProgramHost } from "../external-tool/program.ts"
import type { McpPool, PooledTool } from "../mcp/pool.ts"
import type { Plugins } from "../plugin/open.ts"
import { loadToolFiles } from "../registry/files.ts"
import { createRegistry, type RegisteredTool, type Registry } from "../registry/registry.ts"
import { toolAliases } from "./module-aliases.ts"
import type { TackleOptions } from "./options.ts"

/** Where tools come from beside the options. */
export interface ToolSources {
  builtin: BuiltinOptions
  /** With what tools in other languages run. */
  programs: ProgramHost
  mcp: McpPool | undefined
  plugins: Plugins | undefined
}

/** The registry of all tools: the built-in ones, the options' own, those of plugins, of files and of MCP servers. */
export async function openRegistry(
  options: TackleOptions,
  { builtin, programs, mcp, plugins }: ToolSources,
): Promise<Registry> {
  const files = options.toolFiles ?? []
  // Looking for what the files may import takes longer than all else here.
  const custom = await loadToolFiles(files, { aliases: files.length > 0 ? toolAliases() : {}, programs })
  return createRegistry({
    tools: [
      ...builtinTools(builtin).map(fromBuiltin),
      ...(options.tools ?? []).map((tool) => ({ tool, source: { kind: "library" } as const })),
      ...(plugins?.tools ?? []).map(fromPlugin),
      ...custom.tools,
    ],
    problems: [...(plugins?.problems ?? []), ...custom.problems],
    ...(mcp ? { living: async () => (await mcp.tools()).map(fromMcp) } : {}),
    override: options.override ?? [],
    disabled: new Set(options.disabledTools),
  })
}

function fromBuiltin({ tool, unavailable }: BuiltinTool): RegisteredTool {
  return { tool, source: { kind: "builtin" }, unavailable: ({ model }) => unavailable(model) }
}

function fromPlugin({ tool, plugin }: Plugins["tools"][number]): RegisteredTool {
  return { tool, source: { kind: "plugin", plugin } }
}

function fromMcp({ tool, server }: PooledTool): RegisteredTool {
  return { tool, source: { kind: "mcp", server } }
}
