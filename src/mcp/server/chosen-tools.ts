import type { Tackle } from "../../engine/tackle.ts"
import { UsageError } from "../../util/errors.ts"

/**
 * Throws `UsageError` for an agent or a chosen tool that is not there, and for a tool that cannot be offered to any
 * client: what was written by hand is told at the start, not by a tool that is missing later.
 */
export async function assertChosen(
  tackle: Tackle,
  { agent, tools, signal }: { agent?: string; tools?: readonly string[]; signal: AbortSignal },
): Promise<void> {
  const caller = tackle.caller(agent === undefined ? {} : { agent })
  try {
    // Without a choice nothing is asked, so that MCP servers of the configuration start with the first list and not before.
    if (!tools) return
    const listed = await caller.tools(signal)
    for (const id of tools) {
      const tool = listed.find((entry) => entry.id === id)
      // Whether somebody is there to answer is known of each client only.
      if (tool?.offered || id === "question") continue
      if (tool) throw new UsageError(`The tool "${id}" cannot be offered: ${tool.reason} (--tools).`)
      const ids = listed.filter(({ offered }) => offered).map((entry) => entry.id)
      throw new UsageError(`There is no tool "${id}" (--tools). There are: ${ids.join(", ")}.`)
    }
  } finally {
    await caller.close()
  }
}
