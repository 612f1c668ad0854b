import type { Context } from "hono"
import * as z from "zod"
import type { TackleEvent } from "../../event/events.ts"
import { createChannel } from "../../util/channel.ts"
import { type ServerContext, sessionOf } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { eventStream } from "../event-stream.ts"
import { createRouter, route, sessionParams } from "./route.ts"

const sequence = z.coerce.number().int().min(0)

/** OpenAPI description of an event stream. */
const stream = {
  200: {
    description: "Each `data` is a `SessionEvent` or a `Reset` as JSON. `id` is the sequence number.",
    content: { "text/event-stream": { schema: z.custom<string>().openapi({ type: "string" }) } },
  },
}

/** Creates the routes of event streams. */
export function eventRoutes(context: ServerContext) {
  const { engines, heartbeatMs, maxWaiting } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/event",
      summary: "Follow a session",
      description:
        "Sends the changes after the number `after`, then each part that is being streamed, with its text so far, then all events as they happen. Without `after`, sends no stored changes. To reconnect, send the header `Last-Event-ID`, which takes precedence over `after`. The stream ends after a `reset`.",
      scope: "read",
      request: {
        params: sessionParams,
        query: z.strictObject({
          after: sequence.optional().openapi({
            description: "Number of the last event that the client knows, or `seq` of the session",
          }),
        }),
      },
      responses: stream,
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const after = lastEventID(c) ?? c.req.valid("query").after
      const { directory } = await sessionOf(context, id)
      const { tackle, release } = await engines.hold(directory)
      try {
        const handle = await tackle.sessions.get(id)
        if (!handle) throw notFound("session", id)
        const ending = context.streamSignal(id)
        const events = handle.events({ after, signal: ending.signal, maxWaiting })
        const onEnd = () => {
          ending.release()
          release()
        }
        return respond(c, eventStream(events, { heartbeatMs, onEnd }))
      } catch (error) {
        release()
        throw error
      }
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/event",
      summary: "Follow all sessions",
      description:
        "Sends the events of all sessions of this server as they happen. The stream cannot be continued after a disconnect.",
      scope: "read",
      responses: stream,
    }),
    (c) => {
      const channel = createChannel<TackleEvent | { type: "reset"; reason: "behind" }>(end)
      const unsubscribe = engines.subscribe((event) => {
        channel.push(event)
        if (channel.size <= maxWaiting) return
        channel.drain()
        channel.push({ type: "reset", reason: "behind" })
        end()
      })
      const ending = context.streamSignal("")
      ending.signal.addEventListener("abort", end, { once: true })
      function end(): void {
        unsubscribe()
        ending.signal.removeEventListener("abort", end)
        channel.end()
      }
      return respond(c, eventStream(channel, { heartbeatMs, onEnd: ending.release }))
    },
  )

  return routes
}

function respond(c: Context, stream: ReadableStream<Uint8Array>) {
  c.header("content-type", "text/event-stream")
  c.header("x-accel-buffering", "no")
  return c.body(stream, 200)
}

function lastEventID(c: Context): number | undefined {
  const text = c.req.header("last-event-id")
  if (text === undefined || text === "") return undefined
  const parsed = sequence.safeParse(/^\d+$/.test(text) ? text : "-")
  if (parsed.success) return parsed.data
  throw new ServerError("The header Last-Event-ID is not a sequence number.", {
    status: 400,
    code: "request.invalid",
  })
}
