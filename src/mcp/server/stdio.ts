import type { Readable, Writable } from "node:stream"
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import { type ConnectionOptions, openConnection } from "./connection.ts"

/**
 * Serves one client over two streams, with one message per line. When `input` ends or the signal fires, ends the
 * client's calls and then resolves.
 */
export async function serveStdio(
  options: ConnectionOptions & { input: Readable; output: Writable; signal: AbortSignal },
): Promise<void> {
  const { input, output, signal } = options
  const transport = new StdioServerTransport(input, output)
  const connection = openConnection(options)
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  connection.server.onclose = resolve
  signal.addEventListener("abort", () => resolve(), { once: true })
  try {
    await connection.server.connect(transport)
    if (!signal.aborted) await gone
  } finally {
    await connection.close()
  }
}
