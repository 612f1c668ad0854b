import { Client } from "@modelcontextprotocol/client"
import { abortedError } from "../../util/abort.ts"
import type { McpServer } from "./config.ts"
import { McpServerError } from "./errors.ts"
import { requestCapabilities } from "./requests.ts"
import type { ServerTransport } from "./transport.ts"

/** A server that answered, and the way on which it did. */
export interface Greeted {
  client: Client
  transport: ServerTransport
}

/** The server, and who hears what it says by itself. */
export interface GreetOptions {
  server: McpServer
  /** In milliseconds, for each way. */
  timeout: number
  /** The server says that its tools are others now. */
  onToolsChanged(): void
  /** The server says that a resource changed that it was asked to watch. */
  onResourceChanged(uri: string): void
  /** Sets what answers the server. */
  prepare(client: Client): void
  /** Fires to give up. */
  signal: AbortSignal
}

/** The protocol wants one; servers at most note it. */
const clientVersion = "0"

/**
 * By the first way that the server speaks. Where it speaks none, the fault is that of the first. Throws
 * `McpServerError`, and the signal's reason.
 */
export async function greetFirst(
  ways: readonly ServerTransport[],
  { server, timeout, onToolsChanged, onResourceChanged, prepare, signal }: GreetOptions,
): Promise<Greeted> {
  let problem: McpServerError | undefined
  for (const transport of ways) {
    const client = new Client(
      { name: "tackle", version: clientVersion },
      { capabilities: requestCapabilities },
    )
    // Every request hears of its own fault; what is left are lines that are no messages.
    client.onerror = () => {}
    client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged())
    client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
      onResourceChanged(params.uri),
    )
    prepare(client)
    try {
      await client.connect(transport, { timeout, signal })
      return { client, transport }
    } catch (error) {
      problem ??= new McpServerError(server.id, transport.explain(error), error)
      await transport.close()
      if (signal.aborted) throw abortedError(signal)
      if (!transport.isForeign(error)) throw problem
    }
  }
  throw problem
}
