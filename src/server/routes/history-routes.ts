import * as z from "zod"
import { allSessions } from "../../store/session-pages.ts"
import { type ServerContext, sessionOf, viewOf, withSession } from "../context.ts"
import { notFound } from "../errors.ts"
import { page } from "../schemas/named.ts"
import { sessionBodies, sessionResponses } from "../schemas/session-schemas.ts"
import { body, createRouter, directoryErrors, json, route, sessionParams, tenantErrors } from "./route.ts"

/**
 * Creates the routes that fork, undo, compact, export and import sessions, and the routes that read to-do lists,
 * changed files and subagents.
 */
export function historyRoutes(context: ServerContext) {
  const { engines, store } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/fork",
      summary: "Create a session with a copy of the history",
      scope: "run",
      errors: ["message.unknown"],
      request: {
        params: sessionParams,
        body: { content: { "application/json": { schema: sessionBodies.fork } } },
      },
      responses: { 201: json(sessionResponses.session) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { id } = c.req.valid("param")
      const options = c.req.valid("json")
      const session = await withSession(context, id, async (_, tackle) => {
        const fork = await tackle.sessions.fork(id, options)
        if (!fork) throw notFound("session", id)
        return fork.info()
      })
      return c.json(await viewOf(context, session), 201)
    },
  )

  for (const direction of ["undo", "redo"] as const) {
    routes.openapi(
      route({
        method: "post",
        path: `/session/{id}/${direction}`,
        summary:
          direction === "undo"
            ? "Undo the file changes of the latest turn that changed files and is not undone"
            : "Restore the changes of the most recently undone turn, one turn per request",
        description:
          "Restores all files or none. If a file cannot be restored, for example because it was changed after the turn, responds with the code `session.undo` and the files in `details.files`. To continue, send the request again with `others` or `skip`, and without `through`.",
        scope: "run",
        errors: ["session.busy", "session.held", "session.undo", "session.nothing-to-undo"],
        request: {
          params: sessionParams,
          body: { content: { "application/json": { schema: sessionBodies.undo } } },
        },
        responses: { 200: json(sessionResponses.undo) },
      }),
      async (c) => {
        context.assertStartsWork()
        const choice = c.req.valid("json")
        const { id } = c.req.valid("param")
        return c.json(await withSession(context, id, (handle) => handle[direction](choice)), 200)
      },
    )
  }

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/compact",
      summary: "Replace old messages in the model's history with a summary",
      scope: "run",
      errors: ["session.busy", "session.held", "session.compaction", ...tenantErrors],
      request: { params: sessionParams },
      responses: { 200: json(sessionResponses.compaction) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { signal } = c.req.raw
      const result = await withSession(context, c.req.valid("param").id, (handle) =>
        handle.compact({ signal }),
      )
      return c.json(result, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/export",
      summary: "Export a session and its subagents' sessions",
      scope: "read",
      request: {
        params: sessionParams,
        query: z.strictObject({
          sanitize: z
            .enum(["true", "false"])
            .optional()
            .openapi({ description: "Whether to omit texts, file names and paths" }),
        }),
      },
      responses: { 200: json(sessionResponses.archive) },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const sanitize = c.req.valid("query").sanitize === "true"
      const archive = await withSession(context, id, (_, tackle) => tackle.sessions.export(id, { sanitize }))
      if (!archive) throw notFound("session", id)
      return c.json(archive, 200)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/session/import",
      summary: "Store an exported session",
      scope: "run",
      errors: [...directoryErrors, "session.archive", "session.exists"],
      request: { body: body(sessionBodies.import) },
      responses: { 201: json(sessionResponses.session) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { directory, archive, copy } = c.req.valid("json")
      const session = await engines.use(directory, async (tackle) =>
        (await tackle.sessions.import(archive, { copy, tenant: c.get("token").tenant })).info(),
      )
      return c.json(await viewOf(context, session), 201)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/todo",
      summary: "Read the to-do list",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(page(sessionResponses.todo)) },
    }),
    async (c) => {
      const { id } = await sessionOf(context, c.req.valid("param").id)
      return c.json({ items: await store.todos(id) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/diff",
      summary: "List the files that the session changed, with a diff against their original content",
      description: "Does not include turns that were undone.",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(page(sessionResponses.diff)) },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const items = await withSession(context, id, (_, tackle) => tackle.sessions.diff(id))
      return c.json({ items: items ?? [] }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/stats",
      summary: "Read the tokens, cost and calls of the session and its subagents",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(sessionResponses.stats) },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const stats = await withSession(context, id, (_, tackle) => tackle.sessions.stats({ session: id }))
      return c.json(stats, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/children",
      summary: "List the session's subagent sessions",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(page(sessionResponses.session)) },
    }),
    async (c) => {
      const { id } = await sessionOf(context, c.req.valid("param").id)
      const children = await allSessions(store, { parentID: id })
      return c.json({ items: await Promise.all(children.map((child) => viewOf(context, child))) }, 200)
    },
  )

  return routes
}
