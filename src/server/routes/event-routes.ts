import type { Context } from "hono"
import * as z from "zod"
import { type ServerContext, sessionOf } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { eventStream } from "../event-stream.ts"
import { followSessions } from "../followed-sessions.ts"
import { reference } from "../schemas/named.ts"
import { createRouter, numberIn, route, sessionParams } from "./route.ts"

const sequence = numberIn({ min: 0, max: Number.MAX_SAFE_INTEGER })

/** Maximum number of sessions that one stream follows. */
const maxFollowed = 100

const follows = z
  .string()
  .regex(/^\w+(:\d{1,15})?(,\w+(:\d{1,15})?)*$/, "expected session ids such as `ses_01:12,ses_02`")
  .transform((text) =>
    text.split(",").map((each) => {
      const [id = "", after] = each.split(":")
      return { id, ...(after !== undefined && { after: Number(after) }) }
    }),
  )
  .refine((sessions) => sessions.length <= maxFollowed, `follow at most ${maxFollowed} sessions`)

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
        const events = handle.events({ after, signal: ending.signal, maxWaiting })
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
        "Sends the events of all sessions on this server as they happen, and the permission requests and questions from other processes on the same database. Without `follow`, the stream cannot be continued after a disconnect. A token with a tenant receives only events from the tenant's sessions.",
      scope: "read",
      request: {
        query: z.strictObject({
          follow: follows.optional().openapi({
            description:
              "Sessions whose events are sent as by `GET /session/{id}/event`, with stored changes and numbers: ids, separated by commas, each with `:` and the number of the last event that the client received. Sessions that do not exist are ignored. With `reset`, the stream ends",
            example: "ses_01:12,ses_02:7",
          }),
        }),
      },
      responses: stream("The messages have no `id`."),
    }),
    async (c) => {
      const { follow: sessions = [] } = c.req.valid("query")
      const { tenant } = c.get("token")
      const { events, onEnd } = await followSessions(context, { sessions, tenant })
      return respond(c, eventStream(events, { heartbeatMs, onEnd }))
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
