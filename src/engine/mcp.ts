import { enabledServers } from "../mcp/client/config.ts"
import type { McpPool, McpPoolOptions } from "../mcp/client/pool.ts"
import { orAbort } from "../util/abort.ts"
import { UsageError } from "../util/errors.ts"
import type { TackleOptions } from "./options.ts"
import type { Tackle } from "./tackle.ts"

/** Options for the pool, except the servers. The fingerprint and token files are given as paths. */
interface McpSurroundings extends Omit<McpPoolOptions, "servers" | "fingerprints" | "tokens"> {
  /** Path of the file with the tool fingerprints. */
  fingerprints: string
  /** Path of the file with the tokens. */
  tokens: string
  /** Receives the tokens whenever they are read or written. */
  onSecrets(secrets: Record<string, string>): void
}

/** Opens the enabled MCP servers. Loads no MCP code if no servers are enabled. */
export async function openMcp(
  { mcp, openMcp: between }: TackleOptions,
  surroundings: McpSurroundings,
): Promise<McpPool | undefined> {
  const open = () => openPool(mcp, surroundings)
  return between === undefined ? open() : between(open)
}

async function openPool(
  mcp: TackleOptions["mcp"],
  { fingerprints, tokens, onSecrets, ...surroundings }: McpSurroundings,
): Promise<McpPool | undefined> {
  const servers = enabledServers(mcp)
  if (servers.length === 0) return undefined
  const [{ createMcpPool }, { openToolFingerprints }, { openTokenStore }] = await Promise.all([
    import("../mcp/client/pool.ts"),
    import("../mcp/client/tool-fingerprints.ts"),
    import("../mcp/client/oauth/token-store.ts"),
  ])
  return createMcpPool({
    ...surroundings,
    servers,
    fingerprints: openToolFingerprints(fingerprints, surroundings.worktree),
    tokens: openTokenStore(tokens, onSecrets),
  })
}

/**
 * Creates the public functions for MCP servers. Without a pool, the functions that list something return empty arrays,
 * and the other functions throw `UsageError`. All functions except `mcpServers` use `signal` if the caller passes no
 * signal.
 */
export function createMcpAnswers(
  pool: McpPool | undefined,
  { signal: engine, hide }: { signal: AbortSignal; hide<T>(value: T): T },
): Pick<
  Tackle,
  "mcpServers" | "mcpPrompts" | "mcpPrompt" | "mcpResources" | "readMcpResource" | "watchMcpResource"
> {
  function poolThere(): McpPool {
    if (!pool) throw new UsageError("No MCP servers are enabled. Add a server to the config, or enable one.")
    return pool
  }

  return {
    async mcpServers({ signal, ...options } = {}) {
      const status = pool?.status(options) ?? Promise.resolve([])
      return signal ? orAbort(status, signal) : status
    },
    async mcpPrompts(signal = engine, server) {
      return (await pool?.prompts(signal, server)) ?? []
    },
    async mcpPrompt({ signal = engine, ...asked }) {
      return hide(await poolThere().prompt({ ...asked, signal }))
    },
    async mcpResources(signal = engine) {
      return hide((await pool?.resources(signal)) ?? [])
    },
    async readMcpResource({ signal = engine, ...asked }) {
      return hide((await poolThere().readResource({ ...asked, signal })).contents)
    },
    watchMcpResource: async ({ signal = engine, ...asked }) =>
      await poolThere().watchResource({ ...asked, signal }),
  }
}
