// Adds `openapi` to the schemas.
import "@hono/zod-openapi"
import type { Context } from "hono"
import * as z from "zod"
import type { Tackle } from "../engine/tackle.ts"
import type { EventOf } from "../event/events.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { SessionHandle } from "../session/handle.ts"
import { isBelow } from "../session/lineage.ts"
import type { SessionEvent } from "../session/session-events.ts"
import { within } from "../util/abort.ts"
import { type Channel, createChannel } from "../util/channel.ts"
import { currentTime } from "../util/time.ts"
import { type ServerContext, sessionOf } from "./context.ts"
import { notFound } from "./errors.ts"
import type { EventMapper } from "./event-mapper.ts"

/** Access to the waiting permission requests and questions from a session and its subagents. */
export interface WaitingRequests {
  permissions(): PermissionRequest[]
  questions(): QuestionRequest[]
}

/** The answer to a permission request or a question. */
export interface RequestAnswer {
  requestID: string
  reply: PermissionReply | { answers: QuestionAnswers } | { dismissed: true }
}

/** OpenAPI description for a response that is a mapped stream. */
export const mappedStream = {
  200: {
    description: "Server-sent events. Each `data` is one item as JSON.",
    content: { "text/event-stream": { schema: z.custom<string>().openapi({ type: "string" }) } },
  },
}

/** Access to a mapped stream's session. */
export interface MappedSession {
  tackle: Tackle
  handle: SessionHandle
  waiting: WaitingRequests
  /**
   * Answers requests from the session and its subagents. Skips permission requests that have already been answered.
   * Throws `ServerError` if a request is unknown, or if a question has already been answered. If a request belongs to
   * another session, throws before it answers any request.
   */
  reply(answers: readonly RequestAnswer[]): Promise<void>
  /**
   * Returns the session's events after a sequence number, and new requests from its subagents. The caller must read the
   * channel to its end or close it.
   */
  follow(after: number): Channel<SessionEvent>
}

/**
 * Responds with a stream of the items that `begin` returns, or with status 204 if `begin` returns undefined. Keeps the
 * engine open until the stream ends. If `last` is set, it is sent as an additional last message.
 */
export async function respondWithItems(
  context: ServerContext,
  c: Context,
  options: {
    headers?: Readonly<Record<string, string>>
    last?: string
    begin(session: MappedSession): Promise<AsyncGenerator<unknown> | undefined>
  },
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
    const handle = await tackle.sessions.get(id)
    if (!handle) throw notFound("session", id)
    const waiting = waitingRequests(tackle, id)
    const follow = (after: number) => eventsOf(context, tackle, handle, { after, signal: ending.signal })
    const reply = (answers: readonly RequestAnswer[]) => replyTo(tackle, id, waiting, answers)
    const items = await options.begin({ tackle, handle, waiting, reply, follow })
    if (items) {
      c.header("content-type", "text/event-stream")
      for (const [name, value] of Object.entries(options.headers ?? {})) c.header(name, value)
      return c.body(
        serverSentEvents(items, { heartbeatMs: context.heartbeatMs, onEnd, last: options.last }),
        200,
      )
    }
  } catch (error) {
    onEnd()
    throw error
  }
  onEnd()
  return c.body(null, 204)
}

/**
 * Converts the events with a mapper and yields the items. `present` is the number of the session's latest change when
 * the stream began.
 */
export async function* itemsOf<T>(
  mapper: EventMapper<T>,
  events: AsyncIterableIterator<SessionEvent>,
  { after, present }: { after: number; present: number },
): AsyncGenerator<T> {
  let last = after
  let isCurrent = false
  if (last >= present) {
    isCurrent = true
    yield* mapper.caughtUp()
  }
  if (mapper.ended) await events.return?.()
  for await (const event of events) {
    if (event.type === "reset") {
      const problem =
        event.reason === "behind"
          ? "The client read too slowly."
          : "The session has no event with the requested number."
      yield* mapper.failed(`${problem} Load the session again.`)
      return
    }
    yield* mapper.convert(event)
    last = event.seq ?? last
    if (!isCurrent && last >= present) {
      isCurrent = true
      yield* mapper.caughtUp()
    }
    if (mapper.ended) return
  }
}

/**
 * Yields a session's events until the session is idle. The last event is the end of the latest run, even if that run
 * ended before the first event or in another process.
 */
export async function* untilIdle(
  events: Channel<SessionEvent>,
  session: SessionHandle,
): AsyncGenerator<SessionEvent, undefined> {
  const leave = new AbortController()
  let end: EventOf<"run.completed"> | undefined
  /** Number of the latest change at the time when the session became idle. */
  let target = Number.POSITIVE_INFINITY
  async function addEnd(): Promise<void> {
    const completed = await session.wait({ signal: leave.signal })
    target = await session.sequence()
    end = completed ?? endElsewhere(session.id)
    events.push(end)
  }
  // An aborted wait rejects. If the engine closes, the wait rejects and the events end, so the loop below ends too.
  void addEnd().catch(() => {})
  let last = 0
  try {
    for await (const event of events) {
      last = event.seq ?? last
      if (event !== end) yield event
      if (end && last >= target) return yield end
    }
  } finally {
    leave.abort()
  }
}

/** Returns the `run.completed` event for a run in another process, which the events do not contain. */
function endElsewhere(sessionID: string): EventOf<"run.completed"> {
  const usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }
  const result = { status: "completed" as const, exitCode: 0, text: "", messageIDs: [], usage }
  return { type: "run.completed", time: currentTime(), sessionID, ...result, refused: [], durationMs: 0 }
}

function waitingRequests(tackle: Tackle, sessionID: string): WaitingRequests {
  return {
    permissions: () => tackle.pendingRequests().filter((request) => concerns(request, sessionID)),
    questions: () => tackle.questions.pending().filter((request) => concerns(request, sessionID)),
  }
}

function concerns({ sessionID, tool }: PermissionRequest | QuestionRequest, id: string): boolean {
  return sessionID === id || tool?.parent?.sessionID === id
}

async function replyTo(
  tackle: Tackle,
  sessionID: string,
  waiting: WaitingRequests,
  answers: readonly RequestAnswer[],
): Promise<void> {
  const own = new Set([...waiting.permissions(), ...waiting.questions()].map(({ id }) => id))
  const others = [...tackle.pendingRequests(), ...tackle.questions.pending()]
  for (const { requestID } of answers) {
    if (own.has(requestID)) continue
    const present =
      others.find(({ id }) => id === requestID) ?? (await tackle.store.request(requestID))?.asked
    if (present && !(await isBelow(tackle.store, present.sessionID, sessionID)))
      throw notFound("request", requestID)
  }
  for (const { requestID, reply } of answers) {
    const outcome = await give(tackle, requestID, reply)
    if (outcome === "unknown") throw notFound("request", requestID)
  }
}

function give(tackle: Tackle, requestID: string, reply: RequestAnswer["reply"]) {
  if ("answers" in reply) return tackle.questions.reply(requestID, reply.answers)
  if ("dismissed" in reply) return tackle.questions.reject(requestID)
  return tackle.reply(requestID, reply)
}

/**
 * Returns a session's events, and new requests from its subagents. The stored changes after `after` do not count toward
 * the maximum number of waiting events.
 */
function eventsOf(
  { maxWaiting }: ServerContext,
  tackle: Tackle,
  handle: SessionHandle,
  options: { after: number; signal: AbortSignal },
): Channel<SessionEvent> {
  const own = handle.events({ ...options, maxWaiting })
  const channel = createChannel<SessionEvent>(stop)
  const unsubscribe = tackle.subscribe((event) => {
    const asked = event.type === "permission.asked" || event.type === "question.asked"
    if (asked && event.sessionID !== handle.id && concerns(event.request, handle.id)) channel.push(event)
  })
  function stop(): void {
    unsubscribe()
    void own.return?.()
  }
  void (async () => {
    const present = await tackle.store.sequence(handle.id)
    const limit = maxWaiting + Math.max(0, present - options.after)
    for await (const event of own) {
      channel.push(event)
      if (channel.size <= limit) continue
      channel.drain()
      channel.push({ type: "reset", sessionID: handle.id, seq: event.seq ?? present, reason: "behind" })
      break
    }
    unsubscribe()
    channel.end()
  })().catch((error: unknown) => {
    unsubscribe()
    channel.fail(error)
  })
  return channel
}

function serverSentEvents(
  items: AsyncGenerator<unknown>,
  { heartbeatMs, onEnd, last }: { heartbeatMs: number; onEnd(): void; last: string | undefined },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const message = (data: string) => encoder.encode(`data: ${data}\n\n`)
  let next: Promise<IteratorResult<unknown>> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        next ??= items.next()
        const item = await within(next, heartbeatMs).catch((error: unknown) => {
          onEnd()
          throw error
        })
        if (item === undefined) {
          controller.enqueue(encoder.encode(": heartbeat\n\n"))
          return
        }
        next = undefined
        const { done, value } = item
        if (!done) {
          controller.enqueue(message(JSON.stringify(value)))
          return
        }
        if (last !== undefined) controller.enqueue(message(last))
        onEnd()
        controller.close()
      },
      async cancel() {
        onEnd()
        await items.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
