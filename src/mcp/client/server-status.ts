import { within } from "../../util/abort.ts"
import type { LivingServer } from "./living-server.ts"
import { mcpToolID } from "./tool-id.ts"

/** A server as `tackle mcp list` shows it. `problem` is set where it is `failed`. */
export interface McpServerStatus {
  id: string
  status: "connected" | "failed"
  tools: { id: string; name: string; description: string }[]
  problem?: string
}

/** How a person looks at the servers. */
export interface McpLook {
  /**
   * Milliseconds after which a server that is not up, and whose `timeout` the config does not name, counts as one that
   * does not answer. Default: as long as it may take to start.
   */
  patienceMs?: number
  /** Hears of each as soon as it is known, in no particular order. */
  onStatus?(status: McpServerStatus): void
}

/** How a server is, once it was started where it was not yet. `patienceMs` as in {@link McpLook}. Never rejects. */
export async function statusWithin(
  living: LivingServer,
  patienceMs: number | undefined,
): Promise<McpServerStatus> {
  const limitMs = living.server.settings.timeout === undefined ? patienceMs : undefined
  return (await upWithin(living, limitMs)) ? statusOf(living) : lateStatus(living, limitMs)
}

/** False where it takes longer; it goes on starting then. */
async function upWithin(living: LivingServer, limitMs: number | undefined): Promise<boolean> {
  const up = living.refresh().then(() => true)
  return limitMs === undefined ? up : ((await within(up, limitMs)) ?? false)
}

function lateStatus({ server: { id } }: LivingServer, limitMs = 0): McpServerStatus {
  const problem = `It does not answer within ${limitMs / 1000} s. Where it only needs longer, give it a "timeout" in the config (milliseconds).`
  return { id, status: "failed", tools: [], problem }
}

function statusOf(living: LivingServer): McpServerStatus {
  const { id } = living.server
  const problem = living.problem()
  const tools = living.tools().map((tool) => ({
    id: mcpToolID(id, tool.name),
    name: tool.name,
    description: tool.description ?? "",
  }))
  return problem === undefined ? { id, status: "connected", tools } : { id, status: "failed", tools, problem }
}
