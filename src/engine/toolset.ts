import type { McpPool } from "../mcp/client/pool.ts"
import type { Registry } from "../registry/registry.ts"
import { realPath } from "../util/paths.ts"
import type { Authority } from "./authority.ts"
import type { Equipment } from "./equipment.ts"
import type { Foundation } from "./foundation.ts"
import { openMcp } from "./mcp.ts"
import { openRegistry } from "./tools.ts"

/** The tools of an engine, and the MCP servers that some of them are of. */
export interface Toolset {
  /** Absent where no server is named. */
  mcp: McpPool | undefined
  registry: Registry
  /** Calls the listener when a server has other tools than before. Returns what ends that. */
  onToolsChanged(listener: () => void): () => void
}

/** Starts no server yet. What has to end is put into `opening`. */
export async function openToolset(
  { options, place, places, variables, processes, onSecrets, plugins }: Foundation,
  { definitions, features, sandbox, search }: Equipment,
  { grants, reach }: Authority,
  opening: AsyncDisposableStack,
): Promise<Toolset> {
  const { directory, worktree, onProblem } = place
  const listeners = new Set<() => void>()
  const mcp = await openMcp(options, {
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    fingerprints: places.mcpFingerprints,
    tokens: places.mcpTokens,
    onSecrets,
    onChanged: async (tools) => {
      const lapsed = await grants.lapse(tools)
      if (lapsed) onProblem("an approval was taken back", lapsed)
    },
    onToolsChanged: () => {
      for (const listener of listeners) listener()
    },
    environment: variables,
    record: processes.add,
    onProblem: (error) => onProblem("tools are missing", error),
  })
  opening.defer(() => mcp?.close())
  const registry = await openRegistry(options, {
    directory,
    variables,
    programs: places.programs,
    record: processes.add,
    hasSandbox: sandbox.present,
    features,
    search,
    reach,
    skills: definitions.skills,
    plugins,
    mcp,
    onProblem,
  })
  definitions.onChanged(registry.renew)
  return {
    mcp,
    registry,
    onToolsChanged(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
