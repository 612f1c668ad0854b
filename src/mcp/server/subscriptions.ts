import {
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import { fileStamp } from "../../util/file-stamp.ts"
import { readResourceID } from "../client/resources.ts"
import { type ClientCalls, completedOf } from "./client-calls.ts"
import { linkTarget, watchFile, watchServerResource } from "./resource-tools.ts"
import type { NamedResource, ResourceSource } from "./resources.ts"

/** Maximum number of subscriptions per client. Each costs a `stat` call per second, or memory on an upstream server. */
const maxSubscriptions = 100

/** The subscriptions of one client. */
export interface Subscriptions {
  /** Ends all subscriptions. Never rejects. */
  close(): Promise<void>
}

type Stop = () => void | Promise<void>

/**
 * Handles `resources/subscribe` and `resources/unsubscribe`. A subscription needs the same permission as reading the
 * resource. If a resource belongs to an upstream server, subscribes to it on that server.
 */
export function offerSubscriptions(
  server: Server,
  {
    tackle,
    calls,
    find,
    onProblem,
    watchMs,
  }: {
    tackle: Pick<Tackle, "watchMcpResource">
    calls: ClientCalls
    find(named: NamedResource, signal: AbortSignal): Promise<ResourceSource>
    onProblem(message: string, error: unknown): void
    /** Interval for checking files, in milliseconds. Default: 1000. */
    watchMs?: number
  },
): Subscriptions {
  const files = createFileWatch(watchMs)
  /** Subscriptions by URI, including subscriptions that are still starting. */
  const active = new Map<string, Promise<Stop>>()

  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, context) => {
    if (!active.has(uri) && active.size >= maxSubscriptions)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `The limit of ${maxSubscriptions} subscriptions has been reached. Unsubscribe from another resource first.`,
      )
    const started = active.get(uri) ?? start(uri, context)
    active.set(uri, started)
    try {
      await started
    } catch (error) {
      if (active.get(uri) === started) active.delete(uri)
      throw error
    }
    return {}
  })
  server.setRequestHandler("resources/unsubscribe", async ({ params: { uri } }) => {
    const started = active.get(uri)
    active.delete(uri)
    await end(started)
    return {}
  })

  async function start(uri: string, context: ServerContext): Promise<Stop> {
    const source = await find({ uri }, context.mcpReq.signal)
    let stop: Stop = () => {}
    const call =
      source.kind === "file"
        ? {
            tool: "read",
            input: { filePath: source.path },
            by: watchFile((file) => {
              stop = files.add(file, () => notify(uri))
            }),
          }
        : {
            tool: readResourceID,
            input: { server: source.server, uri },
            by: watchServerResource(async (signal) => {
              stop = await tackle.watchMcpResource({ ...source, onChanged: () => notify(uri), signal })
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

  function notify(uri: string): void {
    server.sendResourceUpdated({ uri }).catch((error: unknown) => {
      onProblem("a client could not be notified of a changed resource", error)
    })
  }

  /**
   * Ends a subscription. Ignores a subscription that failed to start, because the client has already received the
   * error.
   */
  async function end(started: Promise<Stop> | undefined): Promise<void> {
    const [result] = await Promise.allSettled([started])
    if (result.status === "rejected") return
    try {
      await result.value?.()
    } catch (error) {
      onProblem("a subscription on an MCP server could not be ended", error)
    }
  }

  return {
    async close() {
      const all = [...active.values()]
      active.clear()
      await Promise.all(all.map(end))
    },
  }
}

/** The path that the client specified, and its link target when permission was granted. Both paths are absolute. */
interface WatchedFile {
  path: string
  real: string
}

const defaultWatchMs = 1000

/** Polls files with `stat`, which works on every file system. Runs one timer, and only while files are watched. */
function createFileWatch(everyMs = defaultWatchMs) {
  const watched = new Set<{ file: WatchedFile; stamp: string; onChanged(): void }>()
  let timer: NodeJS.Timeout | undefined

  function check(): void {
    for (const entry of watched) {
      const stamp = stampOf(entry.file)
      if (stamp === entry.stamp) continue
      entry.stamp = stamp
      entry.onChanged()
    }
  }

  return {
    /** Calls `onChanged` after the file is changed, created or deleted. Returns a function that stops watching. */
    add(file: WatchedFile, onChanged: () => void): () => void {
      const entry = { file, stamp: stampOf(file), onChanged }
      watched.add(entry)
      timer ??= setInterval(check, everyMs).unref()
      return () => {
        watched.delete(entry)
        if (watched.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
  }
}

/**
 * Returns a value that changes whenever the file changes. The value stays the same while the path leads to a
 * different file, because the permission covers only the original file.
 */
function stampOf({ path, real }: WatchedFile): string {
  return linkTarget(path) === real ? fileStamp(real) : "elsewhere"
}
