import { createHash } from "node:crypto"
import type { Tool } from "@modelcontextprotocol/client"
import { readPrivateFile, updatePrivateFile } from "../../store/private-file.ts"
import { canonicalJson, isRecord } from "../../util/json.ts"
import type { McpServer } from "./config.ts"
import { mcpToolID } from "./tool.ts"

/**
 * Stored hashes of the tools that were most recently offered in a worktree. A grant applies only to the tool with the
 * stored hash.
 */
export interface ToolFingerprints {
  /**
   * Calls `revoke` with the ids of new and changed tools, then stores their hashes. Rejects with the error of `revoke`,
   * and with `TackleError` if the file cannot be written.
   */
  check(
    server: McpServer,
    tools: readonly Tool[],
    revoke: (ids: readonly string[]) => Promise<void>,
  ): Promise<void>
}

/** Hashes by worktree, then by tool id. */
type Fingerprints = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Opens `mcp-tools.json` in the data directory. A missing or invalid file is treated as empty. */
export function openToolFingerprints(path: string, worktree: string): ToolFingerprints {
  return {
    async check(server, tools, revoke) {
      const now = Object.fromEntries(
        tools.map((tool) => [mcpToolID(server.id, tool.name), hashTool(server, tool)]),
      )
      const before = read(readPrivateFile(path))[worktree] ?? {}
      const changed = Object.keys(now).filter((id) => before[id] !== now[id])
      if (changed.length === 0) return
      await revoke(changed)
      updatePrivateFile(path, "mcp.fingerprints", (stored) => {
        const current = read(stored)
        return { ...current, [worktree]: { ...current[worktree], ...now } }
      })
    },
  }
}

/**
 * Hashes the properties by which the user knows the tool: the server's command or URL, and the tool's name, texts and
 * input schema.
 */
function hashTool({ settings }: McpServer, { name, title, description, inputSchema }: Tool): string {
  const origin = settings.type === "local" ? settings.command : settings.url
  const text = canonicalJson({ origin, name, title, description, inputSchema })
  return createHash("sha256").update(text).digest("hex")
}

function read(value: unknown): Fingerprints {
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
