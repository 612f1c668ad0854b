import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import type { MessageWithParts } from "../../schema/message.ts"
import type { SessionHandle } from "../../session/handle.ts"
import { currentTime } from "../../util/time.ts"
import { type ServerContext, sessionOf, statusOf, withSession } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { streamOfAll } from "../event-stream.ts"
import { createOpenCodeEvents, type OpenCodeEvent, toOpenCodeEntry, toOpenCodeSession } from "../opencode.ts"
import { assertDataUrls } from "../schemas/input-schemas.ts"
import { openCodeProjectRoutes } from "./opencode-project-routes.ts"
import { directoryOf, openCodeRoute, place } from "./opencode-route.ts"
import { body, createRouter, limit, numberIn } from "./route.ts"

const anything = z.record(z.string(), z.unknown())
const session = z.object({ sessionID: z.string() })
const request = z.object({ requestID: z.string() })

const Prompt = z.looseObject({
  messageID: z.string().optional(),
  model: z.looseObject({ providerID: z.string(), modelID: z.string() }).optional(),
  agent: z.string().optional(),
  parts: z.array(z.looseObject({ type: z.string() })),
})

/**
 * Creates the part of OpenCode's API that users of `@opencode-ai/sdk` and `@assistant-ui/react-opencode` need, for use
 * under `/opencode`. Fields that the routes do not define are ignored.
 */
export function openCodeRoutes(context: ServerContext) {
  const { engines, store, version } = context
  const routes = createRouter()
  routes.route("/", openCodeProjectRoutes(context))
  const shown = (info: Parameters<typeof toOpenCodeSession>[0]) => toOpenCodeSession(info, version)

  routes.openapi(
    openCodeRoute({ method: "get", path: "/event", scope: "read", request: { query: place } }),
    (c) => {
      const directory = engines.resolve(directoryOf(context, c))
      return c.body(followDirectory(context, directory), 200, { "content-type": "text/event-stream" })
    },
  )

  for (const path of ["/session", "/experimental/session"] as const)
    routes.openapi(
      openCodeRoute({
        method: "get",
        path,
        scope: "read",
        request: {
          query: place.extend({
            search: z.string().optional(),
            limit: limit,
          }),
        },
      }),
      async (c) => {
        const { search = "", limit } = c.req.valid("query")
        const directory = engines.resolve(directoryOf(context, c))
        const filter = { parentID: null, directory, limit }
        const found =
          search.trim() === ""
            ? await store.sessions(filter)
            : (await store.search(search, filter)).map(({ session }) => session)
        return c.json(found.map(shown), 200)
      },
    )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session",
      scope: "run",
      request: {
        query: place,
        body: body(
          z.looseObject({
            title: z.string().optional(),
            parentID: z.string().optional(),
            agent: z.string().optional(),
            model: z.looseObject({ id: z.string(), providerID: z.string() }).optional(),
          }),
        ),
      },
    }),
    async (c) => {
      context.assertStartsWork()
      const { title, parentID, agent, model } = c.req.valid("json")
      const name = model && `${model.providerID}/${model.id}`
      const parent = parentID === undefined ? undefined : await sessionOf(context, parentID)
      const created = await engines.use(parent?.directory ?? directoryOf(context, c), (tackle) =>
        tackle.sessions.create({ title, parentID, agent, model: name }),
      )
      return c.json(shown(created.info()), 200)
    },
  )

  routes.openapi(
    openCodeRoute({ method: "get", path: "/session/status", scope: "read", request: { query: place } }),
    async (c) => {
      const tackle = engines.find(engines.resolve(directoryOf(context, c)))
      const own = engines.sessions().filter((each) => each.tackle === tackle)
      const statuses: Record<string, { type: "busy" }> = {}
      for (const { sessionID } of own)
        if ((await statusOf(store, sessionID, tackle)) !== "idle") statuses[sessionID] = { type: "busy" }
      return c.json(statuses, 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "get",
      path: "/session/{sessionID}",
      scope: "read",
      request: { params: session },
    }),
    async (c) => c.json(shown(await sessionOf(context, c.req.valid("param").sessionID)), 200),
  )

  routes.openapi(
    openCodeRoute({
      method: "patch",
      path: "/session/{sessionID}",
      scope: "run",
      request: { params: session, body: body(z.looseObject({ title: z.string().optional() })) },
    }),
    async (c) => {
      const { title } = c.req.valid("json")
      const changed = await withSession(context, c.req.valid("param").sessionID, async (handle) =>
        title === undefined ? handle.info() : handle.update({ title }),
      )
      return c.json(shown(changed), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "delete",
      path: "/session/{sessionID}",
      scope: "admin",
      request: { params: session },
    }),
    async (c) => {
      const { sessionID } = c.req.valid("param")
      const deleted = await withSession(context, sessionID, (_, tackle) => tackle.sessions.delete(sessionID))
      context.endStreams(sessionID)
      return c.json(deleted, 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "get",
      path: "/session/{sessionID}/message",
      scope: "read",
      request: {
        params: session,
        query: z.looseObject({
          limit: numberIn({ min: 1, max: 100_000 }).optional(),
          before: z.string().optional(),
        }),
      },
    }),
    async (c) => {
      const { id, directory } = await sessionOf(context, c.req.valid("param").sessionID)
      const { limit, before } = c.req.valid("query")
      // An open engine's store also hides secrets that became known after the messages were stored.
      const source = engines.find(directory)?.store ?? store
      return c.json((await source.messages(id, { limit, before })).map(toOpenCodeEntry), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/message",
      scope: "run",
      request: { params: session, body: body(Prompt) },
    }),
    async (c) => {
      const entry = await withSession(context, c.req.valid("param").sessionID, async (handle) => {
        await send(handle, c.req.valid("json"))
        await handle.wait({ signal: c.req.raw.signal })
        return (await handle.messages({ limit: 1 })).at(-1)
      })
      if (!entry) throw notFound("session", c.req.valid("param").sessionID)
      return c.json(toOpenCodeEntry(entry), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/prompt_async",
      scope: "run",
      request: { params: session, body: body(Prompt) },
    }),
    async (c) => {
      await withSession(context, c.req.valid("param").sessionID, (handle) =>
        send(handle, c.req.valid("json")),
      )
      return c.body(null, 204)
    },
  )

  async function send(handle: SessionHandle, prompt: z.infer<typeof Prompt>): Promise<void> {
    context.assertStartsWork(handle.id)
    const { messageID: id, agent, model, parts } = prompt
    const name = model && `${model.providerID}/${model.modelID}`
    const texts = parts.flatMap(({ text }) => (typeof text === "string" ? [text] : []))
    const files = parts.flatMap(({ type, mime, url, filename }) =>
      type === "file" && typeof mime === "string" && typeof url === "string"
        ? [{ mime, url, ...(typeof filename === "string" && { filename }) }]
        : [],
    )
    assertDataUrls(files)
    if (agent !== undefined || name !== undefined) await handle.update({ agent, model: name })
    await handle.send(texts.join("\n\n"), { id, files, delivery: "queue" })
  }

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/abort",
      scope: "run",
      request: { params: session },
    }),
    async (c) => {
      await withSession(context, c.req.valid("param").sessionID, (handle) => handle.interrupt())
      return c.json(true, 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/fork",
      scope: "run",
      request: { params: session, body: body(z.looseObject({ messageID: z.string().optional() })) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { sessionID } = c.req.valid("param")
      const { messageID: at } = c.req.valid("json")
      const fork = await withSession(context, sessionID, (_, tackle) =>
        tackle.sessions.fork(sessionID, { at }),
      )
      if (!fork) throw notFound("session", sessionID)
      return c.json(shown(fork.info()), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/summarize",
      scope: "run",
      request: { params: session, body: body(anything) },
    }),
    async (c) => {
      context.assertStartsWork()
      await withSession(context, c.req.valid("param").sessionID, (handle) => handle.compact())
      return c.json(true, 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/revert",
      scope: "run",
      request: { params: session, body: body(z.looseObject({ messageID: z.string() })) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { messageID } = c.req.valid("json")
      const info = await withSession(context, c.req.valid("param").sessionID, async (handle) => {
        let count = turnsSince(await handle.messages(), messageID)
        for (; count > 0; count -= 1) await handle.undo()
        return handle.info()
      })
      return c.json(shown(info), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/session/{sessionID}/unrevert",
      scope: "run",
      request: { params: session },
    }),
    async (c) => {
      context.assertStartsWork()
      const info = await withSession(context, c.req.valid("param").sessionID, async (handle) => {
        while ((handle.info().undone ?? []).length > 0) await handle.redo()
        return handle.info()
      })
      return c.json(shown(info), 200)
    },
  )

  routes.openapi(
    openCodeRoute({ method: "get", path: "/permission", scope: "read", request: { query: place } }),
    async (c) => c.json(engines.find(engines.resolve(directoryOf(context, c)))?.pendingRequests() ?? [], 200),
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/permission/{requestID}/reply",
      scope: "reply",
      request: {
        params: request,
        body: body(
          z.looseObject({ reply: z.enum(["once", "always", "reject"]), message: z.string().optional() }),
        ),
      },
    }),
    async (c) => {
      const { requestID } = c.req.valid("param")
      const { reply, message } = c.req.valid("json")
      const tackle = asking(engines.all(), (each) => each.pendingRequests(), requestID)
      const given = reply === "always" ? { reply, scope: "session" as const } : { reply, message }
      await tackle.reply(requestID, given)
      return c.json(true, 200)
    },
  )

  routes.openapi(
    openCodeRoute({ method: "get", path: "/question", scope: "read", request: { query: place } }),
    async (c) =>
      c.json(engines.find(engines.resolve(directoryOf(context, c)))?.questions.pending() ?? [], 200),
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/question/{requestID}/reply",
      scope: "reply",
      request: { params: request, body: body(z.looseObject({ answers: z.array(z.array(z.string())) })) },
    }),
    async (c) => {
      const { requestID } = c.req.valid("param")
      const tackle = asking(engines.all(), (each) => each.questions.pending(), requestID)
      await tackle.questions.reply(requestID, c.req.valid("json").answers)
      return c.json(true, 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "post",
      path: "/question/{requestID}/reject",
      scope: "reply",
      request: { params: request },
    }),
    async (c) => {
      const { requestID } = c.req.valid("param")
      await asking(engines.all(), (each) => each.questions.pending(), requestID).questions.reject(requestID)
      return c.json(true, 200)
    },
  )

  return routes
}

/**
 * Returns the number of turns to undo. Counts the turns whose file changes have not been undone, from the turn that
 * contains this message to the end. Throws `ServerError` if the message does not exist.
 */
function turnsSince(messages: readonly MessageWithParts[], messageID: string): number {
  const at = messages.findIndex(({ message }) => message.id === messageID)
  if (at < 0)
    throw new ServerError(`The message ${JSON.stringify(messageID)} does not exist.`, {
      code: "message.unknown",
    })
  const start = messages.slice(0, at + 1).findLastIndex(({ message }) => message.role === "user")
  return messages
    .slice(Math.max(0, start))
    .filter(({ parts }) =>
      parts.some((part) => part.type === "patch" && !part.undone && part.files.length > 0),
    ).length
}

/** Returns the engine with this waiting request. Throws `ServerError` if no engine has the request. */
function asking(
  engines: readonly Tackle[],
  pending: (tackle: Tackle) => readonly { id: string }[],
  requestID: string,
): Tackle {
  const found = engines.find((tackle) => pending(tackle).some(({ id }) => id === requestID))
  if (!found) throw notFound("request", requestID)
  return found
}

/**
 * Returns the events of all sessions in a directory, as OpenCode sends them. The events begin with an update of each
 * part that is being streamed, with its text so far.
 */
function followDirectory(context: ServerContext, directory: string): ReadableStream<Uint8Array> {
  const { engines } = context
  const convert = createOpenCodeEvents(context.version)
  const parts = engines.find(directory)?.sessions.streaming() ?? []
  const streaming = parts.flatMap((part) =>
    convert({ type: "part.updated", sessionID: part.sessionID, part, time: currentTime() }),
  )
  return streamOfAll<OpenCodeEvent>(context, {
    subscribe: (listener) =>
      engines.subscribe((event, tackle) => tackle.directory === directory && listener(event)),
    convert,
    first: [{ id: "evt_0", type: "server.connected", properties: {} }, ...streaming],
  })
}
