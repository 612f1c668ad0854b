import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type BuiltinOptions, type BuiltinTool, builtinTools } from "../builtin/index.ts"
import { keyVariables } from "../call/known-secrets.ts"
import type { ProgramHost } from "../external-tool/program.ts"
import { enabledServers } from "../mcp/config.ts"
import type { McpPool, McpPoolOptions, PooledTool } from "../mcp/pool.ts"
import { commandEnvironment } from "../permission/shell/command-environment.ts"
import type { Plugins } from "../plugin/open.ts"
import type { CommandPlace } from "../plugin/shell-env.ts"
import { loadToolFiles } from "../registry/files.ts"
import { createRegistry, type RegisteredTool } from "../registry/registry.ts"
import { type ModuleAliases, resolveFrom } from "../util/load-module.ts"
import type { TackleOptions } from "./options.ts"

/** Nothing of it is loaded where the options name no server. */
export async function openMcp(
  { mcp, openMcp: between }: TackleOptions,
  surroundings: PoolSurroundings,
): Promise<McpPool | undefined> {
  const open = () => openPool(mcp, surroundings)
  return between === undefined ? open() : between(open)
}

type PoolSurroundings = Omit<McpPoolOptions, "servers" | "pins" | "book"> & { pins: string; tokens: string }

async function openPool(
  mcp: TackleOptions["mcp"],
  { pins, tokens, ...surroundings }: PoolSurroundings,
): Promise<McpPool | undefined> {
  const servers = enabledServers(mcp)
  if (servers.length === 0) return undefined
  const [{ createMcpPool }, { openPinBook }, { openTokenBook }] = await Promise.all([
    import("../mcp/pool.ts"),
    import("../mcp/pins.ts"),
    import("../mcp/oauth/token-book.ts"),
  ])
  return createMcpPool({
    ...surroundings,
    servers,
    pins: openPinBook(pins, surroundings.worktree),
    book: openTokenBook(tokens),
  })
}

export async function openRegistry(
  options: TackleOptions,
  mcp: McpPool | undefined,
  surroundings: BuiltinOptions,
  programs: ProgramHost,
  plugins: Plugins | undefined,
) {
  const files = options.toolFiles ?? []
  // Looking for what the files may import takes longer than all else here.
  const custom = await loadToolFiles(files, { aliases: files.length > 0 ? toolAliases() : {}, programs })
  const builtin = builtinTools(surroundings)
  return createRegistry({
    tools: [
      ...builtin.map(fromBuiltin),
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

export function commandOptions(
  options: TackleOptions,
  environment: Readonly<Record<string, string | undefined>>,
  plugins: Plugins | undefined,
) {
  const given = commandVariables(options, environment)
  return {
    environment: async (command: string, place: CommandPlace) => ({
      ...given,
      ...(await plugins?.variables(place)),
      ...(await commandEnvironment(command)),
    }),
    ...(options.shell === undefined ? {} : { shell: options.shell }),
  }
}

/** What programs get of the process's variables: not our own settings nor, unless they are named, the keys of providers and searches. */
export function commandVariables(
  options: TackleOptions,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const keys = new Set(keyVariables(options.providers))
  for (const name of options.passEnvironment ?? []) keys.delete(name)
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith("TACKLE_") && !keys.has(name)),
  )
}

/** For external tools: Python finds our helper, and leaves nothing behind in the private copy of a tool. */
export function programVariables(variables: Readonly<Record<string, string | undefined>>) {
  const found = ["../python", "../../python", "../../../python"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const helpers = found.find((path) => existsSync(join(path, "tackle_tool.py")))
  const { PYTHONPATH: own } = variables
  const path = [...(helpers === undefined ? [] : [helpers]), ...(own ? [own] : [])].join(delimiter)
  return { ...variables, ...(path === "" ? {} : { PYTHONPATH: path }), PYTHONDONTWRITEBYTECODE: "1" }
}

/** What the file of a custom tool or plugin may import without having it installed. */
export function toolAliases(): ModuleAliases {
  const zod = resolveFrom(import.meta.url, "zod")
  const own = ownModule("tool/index")
  return {
    ...(own === undefined ? {} : { "tackle/tool": own, tackle: own }),
    ...(zod === undefined ? {} : { zod }),
    ...pluginAliases(),
  }
}

/** What any module made for OpenCode means by that program's own package, also one that has it installed. */
export function pluginAliases(): ModuleAliases {
  const own = ownModule("plugin/index")
  return own === undefined
    ? {}
    : { "tackle/plugin": own, "@opencode-ai/plugin": own, "@opencode-ai/plugin/tool": own }
}

/** A module of ours in the sources, in the library, or in the library beside the command. */
function ownModule(name: string): string | undefined {
  return (
    resolveFrom(import.meta.url, `../${name}.ts`) ??
    resolveFrom(import.meta.url, `../${name}.js`) ??
    resolveFrom(import.meta.url, `../lib/${name}.js`)
  )
}
