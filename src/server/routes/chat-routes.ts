import * as z from "zod"
import { ChatRequest, type ChatTurn, createUiStream, readTurn, type UiChunk } from "../ai-sdk-stream.ts"
import type { ServerContext } from "../context.ts"
import { ServerError } from "../errors.ts"
import type { MapperOptions } from "../event-mapper.ts"
import { itemsOf, type MappedSession, mappedStream, respondWithItems, untilIdle } from "../mapped-stream.ts"
import { assertDataUrls } from "../schemas/input-schemas.ts"
import { body, createRouter, route, sessionParams, tenantErrors } from "./route.ts"

/** Response headers and last message of the AI SDK's stream protocol. */
const protocol = { headers: { "x-vercel-ai-ui-message-stream": "v1" }, last: "[DONE]" }

/** Creates the routes for AI SDK clients, such as `useChat`. */
export function chatRoutes(context: ServerContext) {
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/chat",
      summary: "Chat with the AI SDK",
      description:
        "Responds with an AI SDK UI message stream, version 1. If the last message is from the user, it is sent to the session. If it is an assistant message with approvals, the approvals answer the permission requests, and the stream continues the message. The stream ends when the run ends or waits for approvals.",
      scope: "run",
      errors: ["input.id", "input.empty", "input.conflict", "request.unknown", "usage", ...tenantErrors],
      request: { params: sessionParams, body: body(ChatRequest) },
      responses: mappedStream,
    }),
    async (c) => {
      context.assertStartsWork(c.req.valid("param").id, c.get("token").tenant)
      const { messages } = c.req.valid("json")
      const turn = readTurn({ messages })
      if (!turn)
        throw new ServerError(
          "The last message must be from the user, or an assistant message with approvals.",
          {
            code: "request.invalid",
          },
        )
      if (turn.kind === "send") assertDataUrls(turn.files)
      const known = { calls: callsIn(messages.at(-1)?.parts ?? []), results: [] }
      return respondWithItems(context, c, {
        ...protocol,
        begin: (session) => openChat(session, turn, known),
      })
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/chat/{chat}/stream",
      summary: "Resume an AI SDK chat",
      description:
        "Streams the current run's message from its beginning. Responds with 204 if no run is active.",
      scope: "read",
      request: { params: sessionParams.extend({ chat: z.string() }) },
      responses: { ...mappedStream, 204: { description: "No run is active" } },
    }),
    async (c) =>
      respondWithItems(context, c, {
        ...protocol,
        async begin({ tackle, handle, waiting, follow }) {
          if ((await tackle.sessions.status(handle.id)) === "idle") return undefined
          const present = await tackle.store.sequence(handle.id)
          const messages = await handle.messages()
          const since = messages.findLast(({ message }) => message.role === "user")?.message.id
          const stream = createUiStream({ sessionID: handle.id, after: 0, since, open: waiting.permissions })
          return itemsOf(stream, untilIdle(follow(0), handle), { after: 0, present })
        },
      }),
  )

  return routes
}

/** Sends the user's text, or the answers to permission requests. Returns the chunks of the assistant's message. */
async function openChat(
  { tackle, handle, waiting, reply, follow }: MappedSession,
  turn: ChatTurn,
  known: MapperOptions["known"],
): Promise<AsyncGenerator<UiChunk>> {
  const { store } = tackle
  const { id: sessionID } = handle
  const open = waiting.permissions
  const after = turn.kind === "answer" ? turn.after : await store.sequence(sessionID)
  // The stream is opened before the text is sent, so that it includes all events.
  const events = follow(after)
  try {
    if (turn.kind === "answer") {
      const status = await tackle.sessions.status(sessionID)
      await reply(
        turn.answers.map(({ id, approved, reason }) => ({
          requestID: id,
          reply: approved ? { reply: "once" } : { reply: "reject", message: reason },
        })),
      )
      if (status === "idle") return ended(events)
      const stream = createUiStream({ sessionID, messageID: turn.id, after, known, open })
      return itemsOf(stream, events, { after, present: await store.sequence(sessionID) })
    }
    const { id, text, files } = turn
    const { state } = await handle.send(text, { id, files, delivery: "queue" })
    // The same text was sent earlier, and its run has ended.
    if (state !== "pending" && (await tackle.sessions.status(sessionID)) === "idle") return ended(events)
    const inputID = state === "pending" ? id : undefined
    const stream = createUiStream({ sessionID, after, inputID, open })
    return itemsOf(stream, events, { after, present: after })
  } catch (error) {
    await events.return?.()
    throw error
  }
}

/** Closes the events and yields a message without content. */
async function* ended(events: AsyncIterableIterator<unknown>): AsyncGenerator<UiChunk> {
  await events.return?.()
  yield { type: "start" }
  yield { type: "finish", finishReason: "stop" }
}

/** Returns the ids of the calls in a message's parts. */
function callsIn(parts: readonly Record<string, unknown>[]): string[] {
  return parts.flatMap(({ toolCallId }) => (typeof toolCallId === "string" ? [toolCallId] : []))
}
