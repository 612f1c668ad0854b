import type { Context } from "hono"
import * as z from "zod"
import { type ServerContext, sessionOf } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { eventStream, type StreamedEvent, streamOfAll } from "../event-stream.ts"
import { reference } from "../schemas/named.ts"
import { createRouter, numberIn, route, sessionParams } from "./route.ts"

const sequence = numberIn({ min: 0, max: Number.MAX_SAFE_INTEGER })

/** OpenAPI description for an event stream. */
const stream = (id: string) => ({
  200: {
    description: `Server-sent events. Each \`data\` is a \`SessionEvent\` or a \`Reset\` as JSON. ${id} After 15 seconds without data, the server sends a comment to keep the connection alive.`,
    content: {
      "text/event-stream": {
        schema: z.custom<string>().openapi({
          type: "string",
          contentMediaType: "application/json",
          contentSchema: { anyOf: [reference("SessionEvent"), reference("Reset")] },
        } as object),
      },
    },
  },
})

/** Explains how to follow a session, in paragraphs for the API reference. */
const following = [
  "Without `after`, the stream contains no stored changes. With `after`, it starts with the objects that changed after this number: the session, messages, parts, inputs and the to-do list. Each object is sent once, in its current state, in the order of the latest changes. Numbers of superseded changes are skipped. A part can arrive before its message, `message.updated` replaces `message.created`, and `time` is the time of sending. Store each object by its id, whether the event creates or updates it. The client has the state of `GET /session/{id}` as soon as it has received the `seq` of that response or a greater number.",
  "Next, the stream sends a `part.updated` without a number for each part that is being streamed, with its text so far. After that, it sends all events as they happen. Only changes to stored objects have a number. These events have none: `part.delta`, `permission.*`, `question.*`, `session.error`, `session.deleted`, `context.filling` and `run.completed`. They are not repeated, so after a disconnect, call `GET /request?session={id}` for the waiting requests, and `POST /session/{id}/wait` for the end of the run.",
  "To reconnect, send the last `id` as the header `Last-Event-ID`, which takes precedence over `after`. The stream ends after a `reset` or `session.deleted`.",
].join("\n\n")

/** Creates the routes for event streams. */
export function eventRoutes(context: ServerContext) {
  const { engines, heartbeatMs, maxWaiting } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/event",
      summary: "Follow a session",
      description: following,
      scope: "read",
      request: {
        params: sessionParams,
        headers: z.object({
          "last-event-id": z.string().optional().openapi({
            description: "The last `id` that the client received. Takes precedence over `after`",
            pattern: "^[0-9]+$",
          }),
        }),
        query: z.strictObject({
          after: sequence.optional().openapi({
            description: "Number of the last event that the client received, or the session's `seq`",
          }),
          others: z.enum(["true", "false"]).optional().openapi({
            description:
              "Whether to also send the events of all other sessions as they happen, like `GET /event`. A token with a tenant receives only events from the tenant's sessions. The messages with these events have no `id`",
          }),
        }),
      },
      responses: stream("`id` is the number of the change. Events without a number have no `id`."),
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
        const { tenant } = c.get("token")
        const follow: ServerContext["followEvents"] = (listener) => context.followEvents(listener, tenant)
        const others = c.req.valid("query").others === "true" ? follow : undefined
        const events = handle.events({ after, signal: ending.signal, maxWaiting, others })
        const onEnd = () => {
          ending.release()
          release()
        }
        return respond(c, eventStream(events, { heartbeatMs, idsOf: id, onEnd }))
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
        "Sends the events of all sessions on this server as they happen, and the permission requests and questions from other processes on the same database. The stream cannot be continued after a disconnect.",
      scope: "read",
      responses: stream("The messages have no `id`."),
    }),
    (c) => {
      const { followEvents: subscribe } = context
      const behind = { type: "reset" as const, reason: "behind" as const }
      return respond(
        c,
        streamOfAll<StreamedEvent>(context, { subscribe, convert: (event) => [event], behind }),
      )
    },
  )

  return routes
}

/** Responds with an event stream. */
export function respond(c: Context, stream: ReadableStream<Uint8Array>) {
  c.header("content-type", "text/event-stream")
  return c.body(stream, 200)
}

function lastEventID(c: Context): number | undefined {
  const text = c.req.header("last-event-id")
  if (text === undefined || text === "") return undefined
  const parsed = sequence.safeParse(/^\d+$/.test(text) ? text : "-")
  if (parsed.success) return parsed.data
  throw new ServerError(
    "The header Last-Event-ID is not a sequence number. Send the last `id` that the stream contained.",
    {
      code: "request.invalid",
    },
  )
}
