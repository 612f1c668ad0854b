import { createHash } from "node:crypto"
import type { Tool } from "@modelcontextprotocol/client"
import { readPrivateFile, updatePrivateFile } from "../../store/private-file.ts"
import { canonicalJson, isRecord } from "../../util/json.ts"
import type { McpServer } from "./config.ts"
import { mcpToolID } from "./tool-id.ts"

/** What tools of servers were when they were last offered in a work tree: what a person allowed is the tool as it was. */
export interface PinBook {
  /**
   * Where tools are new, or others than they were, `lapse` is given their ids; what they are now is noted once it is
   * done. Rejects as `lapse` does, and with `TackleError` where the file cannot be written.
   */
  check(
    server: McpServer,
    tools: readonly Tool[],
    lapse: (ids: readonly string[]) => Promise<void>,
  ): Promise<void>
}

/** By work tree, then by the tool's id: the hash. */
type Pins = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The book in `mcp-tools.json` of the data directory. A missing file, and one that cannot be understood, knows nothing. */
export function openPinBook(path: string, worktree: string): PinBook {
  return {
    async check(server, tools, lapse) {
      const now = Object.fromEntries(
        tools.map((tool) => [mcpToolID(server.id, tool.name), hashTool(server, tool)]),
      )
      const before = read(readPrivateFile(path))[worktree] ?? {}
      const changed = Object.keys(now).filter((id) => before[id] !== now[id])
      if (changed.length === 0) return
      await lapse(changed)
      updatePrivateFile(path, "mcp.pins", (stored) => {
        const current = read(stored)
        return { ...current, [worktree]: { ...current[worktree], ...now } }
      })
    },
  }
}

/** Of all that decides what a tool does and what a model reads of it: the program or address, and its own words. */
function hashTool({ settings }: McpServer, { name, title, description, inputSchema }: Tool): string {
  const origin = settings.type === "local" ? settings.command : settings.url
  const text = canonicalJson({ origin, name, title, description, inputSchema })
  return createHash("sha256").update(text).digest("hex")
}

function read(value: unknown): Pins {
  const stored = isRecord(value) ? value : {}
  return Object.assign(
    Object.create(null),
    Object.fromEntries(Object.entries(stored).map(([worktree, hashes]) => [worktree, hashesOf(hashes)])),
  )
}

function hashesOf(stored: unknown): Record<string, string> {
  const entries = isRecord(stored) ? Object.entries(stored) : []
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  )
}
