import { join, resolve } from "node:path"
import type { LocalServer, McpServer } from "../../../src/mcp/client/config.ts"

const programs = resolve(import.meta.dirname, "../../../node_modules/.bin")

/** Returns a reference server of the protocol's authors. */
export function realServer(
  id: "everything" | "filesystem" | "memory",
  ...args: string[]
): McpServer & { settings: LocalServer } {
  return { id, settings: { type: "local", command: [join(programs, `mcp-server-${id}`), ...args] } }
}

/** Returns `scripted-server.ts`, which writes to the log file. */
export function scriptedServer(log: string, settings: Partial<LocalServer> = {}): McpServer {
  const script = join(import.meta.dirname, "scripted-server.ts")
  return {
    id: "scripted",
    settings: { type: "local", command: [process.execPath, script, log], ...settings },
  }
}

/** Returns `odd-server.ts`, whose replies do not follow the protocol. */
export function oddServer(settings: Partial<LocalServer> = {}): McpServer {
  const script = join(import.meta.dirname, "odd-server.ts")
  return { id: "odd", settings: { type: "local", command: [process.execPath, script], ...settings } }
}
