import {
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import { readResourceID } from "../client/resources.ts"
import type { ClientCalls } from "./client-calls.ts"
import { completedOf } from "./completed-call.ts"
import { createFileWatch } from "./file-watch.ts"
import type { NamedResource, ResourceSource } from "./resource-source.ts"
import { watchFileTool, watchServerResourceTool } from "./watch-tools.ts"

/** Each is a `stat` a second, or a place in a server's memory. */
const mostSubscriptions = 100

/** What one client wants to hear of. */
export interface Subscriptions {
  /** Ends them all. Does not reject. */
  close(): Promise<void>
}

/**
 * Answers `resources/subscribe` and `resources/unsubscribe`: whoever may read a resource may hear when it changes, and is
 * asked for leave in the same way. Servers behind the engine are asked to tell of theirs.
 */
export function offerSubscriptions(
  server: Server,
  {
    tackle,
    calls,
    find,
    onProblem,
    everyMs,
  }: {
    tackle: Pick<Tackle, "watchMcpResource">
    calls: ClientCalls
    find(named: NamedResource, signal: AbortSignal): Promise<ResourceSource>
    onProblem(message: string, error: unknown): void
    /** How often files are looked at, in milliseconds. Default: every second. */
    everyMs?: number | undefined
  },
): Subscriptions {
  const files = createFileWatch(everyMs)
  /** By address; those among them that are about to begin. Each gives its end. */
  const held = new Map<string, Promise<End>>()

  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, context) => {
    if (!held.has(uri) && held.size >= mostSubscriptions)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `No more than ${mostSubscriptions} resources are watched for one client. Unsubscribe from another.`,
      )
    const begun = held.get(uri) ?? begin(uri, context)
    held.set(uri, begun)
    try {
      await begun
    } catch (error) {
      if (held.get(uri) === begun) held.delete(uri)
      throw error
    }
    return {}
  })
  server.setRequestHandler("resources/unsubscribe", async ({ params: { uri } }) => {
    const begun = held.get(uri)
    held.delete(uri)
    await end(begun)
    return {}
  })

  async function begin(uri: string, context: ServerContext): Promise<End> {
    const source = await find({ uri }, context.mcpReq.signal)
    let stop: End = () => {}
    const call =
      source.kind === "file"
        ? {
            tool: "read",
            input: { filePath: source.path },
            by: watchFileTool((place) => {
              stop = files.add(place, () => tell(uri))
            }),
          }
        : {
            tool: readResourceID,
            input: { server: source.server, uri },
            by: watchServerResourceTool(async (signal) => {
              stop = await tackle.watchMcpResource({ ...source, onChanged: () => tell(uri), signal })
            }),
          }
    const outcome = await calls.run(context, call)
    try {
      completedOf(outcome)
    } catch (error) {
      await stop()
      throw error
    }
    return stop
  }

  function tell(uri: string): void {
    server.sendResourceUpdated({ uri }).catch((error: unknown) => {
      onProblem("a client could not be told that a resource changed", error)
    })
  }

  /** What never began has told its own client so. */
  async function end(begun: Promise<End> | undefined): Promise<void> {
    const [result] = await Promise.allSettled([begun])
    if (result.status === "rejected") return
    try {
      await result.value?.()
    } catch (error) {
      onProblem("an MCP server could not be told that a resource is not watched any more", error)
    }
  }

  return {
    async close() {
      const all = [...held.values()]
      held.clear()
      await Promise.all(all.map(end))
    },
  }
}

type End = () => void | Promise<void>
