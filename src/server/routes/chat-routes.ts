import type { Context } from "hono"
import type { Tackle } from "../../engine/tackle.ts"
import type { TackleEvent } from "../../event/events.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import type { SessionHandle } from "../../session/handle.ts"
import type { SessionEvent } from "../../session/session-events.ts"
import { type Channel, createChannel } from "../../util/channel.ts"
import { ChatRequest, type ChatTurn, createUiStream, readTurn, type UiChunk } from "../ai-sdk-stream.ts"
import { type ServerContext, sessionOf } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { z } from "../schemas.ts"
import { body, createRouter, route, sessionParams } from "./route.ts"

/** Creates the route for clients of the AI SDK, such as `useChat`. */
export function chatRoutes(context: ServerContext) {
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/chat",
      summary: "Chat with the AI SDK",
      description:
        "Answers in the UI message stream of the AI SDK, version 1. If the last message is from the user, sends it. If it is an answer with approvals, replies to the requests and continues the answer. The stream ends when the run ends or waits for approvals.",
      scope: "run",
      request: { params: sessionParams, body: body(ChatRequest) },
      responses: stream,
    }),
    async (c) => {
      context.assertStartsWork()
      const { id } = c.req.valid("param")
      const request = c.req.valid("json")
      const turn = readTurn(request)
      if (!turn)
        throw new ServerError("The last message is neither from the user nor an answer with approvals.", {
          status: 400,
          code: "request.invalid",
        })
      const known = callsIn(request.messages.at(-1)?.parts ?? [])
      return streamed(context, c, async (tackle, signal) =>
        openChat(tackle, await handleOf(tackle, id), { turn, known, signal }),
      )
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/chat/{chat}/stream",
      summary: "Resume a chat of the AI SDK",
      description:
        "Sends the answer of the present run from its start. Answers with 204 if no run is active.",
      scope: "read",
      request: { params: sessionParams.extend({ chat: z.string() }) },
      responses: { ...stream, 204: { description: "No run is active" } },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      return streamed(context, c, async (tackle, signal) => {
        if ((await tackle.sessions.status(id)) === "idle") return undefined
        const handle = await handleOf(tackle, id)
        const present = await tackle.store.sequence(id)
        const { open, concerns } = requestsOf(tackle, id)
        const messages = await tackle.store.messages(id)
        const since = messages.findLast(({ message }) => message.role === "user")?.message.id
        const events = eventsOf(tackle, handle, { after: 0, signal, concerns })
        return chunksOf(createUiStream({ sessionID: id, since, open }), events, present)
      })
    },
  )

  return routes
}

/** Describes the stream of a chat. */
const stream = {
  200: {
    description: "Each `data` is a chunk as JSON; the last is `[DONE]`",
    content: { "text/event-stream": { schema: z.custom<string>().openapi({ type: "string" }) } },
  },
}

/** Answers with the chunks that `begin` returns, or with 204. Keeps the engine open until the stream ends. */
async function streamed(
  context: ServerContext,
  c: Context,
  begin: (tackle: Tackle, signal: AbortSignal) => Promise<AsyncGenerator<UiChunk> | undefined>,
): Promise<Response> {
  const id = c.req.param("id") ?? ""
  const { directory } = await sessionOf(context, id)
  const { tackle, release } = await context.engines.hold(directory)
  const ending = context.streamSignal(id)
  const onEnd = () => {
    ending.release()
    release()
  }
  try {
    const chunks = await begin(tackle, ending.signal)
    if (chunks) {
      c.header("content-type", "text/event-stream")
      c.header("x-vercel-ai-ui-message-stream", "v1")
      return c.body(serverSentEvents(chunks, onEnd), 200)
    }
  } catch (error) {
    onEnd()
    throw error
  }
  onEnd()
  return c.body(null, 204)
}

async function handleOf(tackle: Tackle, id: string): Promise<SessionHandle> {
  const handle = await tackle.sessions.get(id)
  if (!handle) throw notFound("session", id)
  return handle
}

/** Returns the unanswered permission requests of a session and its subagents. */
function requestsOf(tackle: Tackle, sessionID: string) {
  const concerns = ({ sessionID: own, tool }: PermissionRequest) =>
    own === sessionID || tool?.parent?.sessionID === sessionID
  return { concerns, open: () => tackle.pendingRequests().filter(concerns) }
}

/** Sends the text or the approvals of a turn. Returns the chunks of its answer. */
async function openChat(
  tackle: Tackle,
  handle: SessionHandle,
  { turn, known, signal }: { turn: ChatTurn; known: string[]; signal: AbortSignal },
): Promise<AsyncGenerator<UiChunk>> {
  const { store } = tackle
  const { id: sessionID } = handle
  const { open, concerns } = requestsOf(tackle, sessionID)
  // The stream begins before the turn, so that it misses nothing.
  const after = turn.kind === "answer" ? turn.after : await store.sequence(sessionID)
  const events = eventsOf(tackle, handle, { after, signal, concerns })
  try {
    if (turn.kind === "answer") {
      for (const { id, approved, reason } of turn.answers)
        await tackle.reply(id, approved ? { reply: "once" } : { reply: "reject", message: reason })
      const stream = createUiStream({ sessionID, messageID: turn.id, known, open })
      return chunksOf(stream, events, await store.sequence(sessionID))
    }
    const { id, text, files } = turn
    const { state } = await handle.send(text, { id, files, delivery: "queue" })
    // The text was sent before, and its run has ended.
    if (state !== "pending" && (await tackle.sessions.status(sessionID)) === "idle") {
      await events.return?.()
      return ended()
    }
    const stream = createUiStream({ sessionID, inputID: state === "pending" ? id : undefined, open })
    return chunksOf(stream, events, after)
  } catch (error) {
    await events.return?.()
    throw error
  }
}

/** Returns the events of a session, and the permission requests of its subagents. */
function eventsOf(
  tackle: Tackle,
  handle: SessionHandle,
  {
    after,
    signal,
    concerns,
  }: { after: number; signal: AbortSignal; concerns(request: PermissionRequest): boolean },
): Channel<SessionEvent> {
  const own = handle.events({ after, signal })
  const channel = createChannel<SessionEvent>(stop)
  const unsubscribe = tackle.subscribe((event) => {
    const asked = event.type === "permission.asked" && event.sessionID !== handle.id
    if (asked && concerns(event.request)) channel.push(event)
  })
  function stop(): void {
    unsubscribe()
    void own.return?.()
  }
  void (async () => {
    for await (const event of own) channel.push(event)
    unsubscribe()
    channel.end()
  })()
  return channel
}

async function* ended(): AsyncGenerator<UiChunk> {
  yield { type: "start" }
  yield { type: "finish", finishReason: "stop" }
}

async function* chunksOf(
  stream: ReturnType<typeof createUiStream>,
  events: AsyncIterableIterator<SessionEvent>,
  present: number,
): AsyncGenerator<UiChunk> {
  let last = 0
  let isCurrent = false
  for await (const event of events) {
    if (event.type === "reset") {
      yield { type: "error", errorText: "The connection was too slow. Load the session again." }
      return
    }
    yield* stream.convert(event satisfies TackleEvent)
    last = event.seq ?? last
    if (!isCurrent && last >= present) {
      isCurrent = true
      yield* stream.caughtUp()
    }
    if (stream.ended) return
  }
}

/** Returns the ids of the calls in the parts of a message. */
function callsIn(parts: readonly Record<string, unknown>[]): string[] {
  return parts.flatMap(({ toolCallId }) => (typeof toolCallId === "string" ? [toolCallId] : []))
}

function serverSentEvents(chunks: AsyncGenerator<UiChunk>, onEnd: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        controller.enqueue(encoder.encode(`data: ${done ? "[DONE]" : JSON.stringify(value)}\n\n`))
        if (!done) return
        onEnd()
        controller.close()
      },
      async cancel() {
        onEnd()
        await chunks.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
