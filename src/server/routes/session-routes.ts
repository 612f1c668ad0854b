import { existsSync } from "node:fs"
import * as z from "zod"
import { matchOf } from "../../store/search.ts"
import type { ListedRow, SearchHit, SessionFilter } from "../../store/store.ts"
import { type ServerContext, sessionOf, viewOf, withSession } from "../context.ts"
import type { Engines } from "../engines.ts"
import { notFound } from "../errors.ts"
import { page } from "../schemas/named.ts"
import { sessionBodies, sessionResponses } from "../schemas/session-schemas.ts"
import { body, createRouter, directoryErrors, json, limit, route, sessionParams } from "./route.ts"

const modelErrors = ["model.not-found", "model.no-key", "model.package"] as const

/** Creates the routes for sessions and their messages. */
export function sessionRoutes(context: ServerContext) {
  const { engines, store } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/session",
      summary: "Create a session",
      scope: "run",
      errors: [...directoryErrors, "agent.unknown", "usage", ...modelErrors],
      request: { body: body(sessionBodies.create) },
      responses: { 201: json(sessionResponses.session) },
    }),
    async (c) => {
      context.assertStartsWork()
      const { directory, ...options } = c.req.valid("json")
      const session = await engines.use(directory, async (tackle) =>
        (await tackle.sessions.create({ ...options, tenant: c.get("token").tenant })).info(),
      )
      return c.json(await viewOf(context, session), 201)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session",
      summary: "List sessions, newest first",
      description: "Does not list subagent sessions.",
      scope: "read",
      errors: directoryErrors,
      request: {
        query: z.strictObject({
          search: z.string().optional().openapi({
            description:
              "Words to search for. If set, only sessions that contain all of them are listed: in the title, in texts, in names of attached files, or in the tools and arguments of calls. The last word may be incomplete",
          }),
          directory: z.string().optional().openapi({
            description: "Absolute path of a directory. If set, only sessions in this directory are listed",
          }),
          limit,
          cursor: z
            .string()
            .regex(/^[\d.]+\.\w+$/, { error: "expected `next` from the previous page" })
            .optional()
            .openapi({ description: "`next` from the previous page" }),
        }),
      },
      responses: { 200: json(page(sessionResponses.session)) },
    }),
    async (c) => {
      const { search, directory, limit, cursor } = c.req.valid("query")
      const wanted = directory === undefined ? undefined : engines.resolve(directory)
      const { tenant } = c.get("token")
      // One more than the limit shows whether another page exists.
      const filter = { ...placeOf(engines, wanted), parentID: null, tenant, after: cursor, limit: limit + 1 }
      const found: (ListedRow & Partial<SearchHit>)[] = search?.trim()
        ? await store.search(search, filter)
        : await store.page(filter)
      const shown = found.slice(0, limit)
      const next = found.length > shown.length ? shown.at(-1)?.cursor : undefined
      const items = await Promise.all(
        shown.map(async (row) => ({
          ...(await viewOf(context, row.session)),
          match: row.text === undefined ? undefined : matchOf({ ...row, text: row.text }, search ?? ""),
        })),
      )
      return c.json({ items, next }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}",
      summary: "Read a session",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(sessionResponses.session) },
    }),
    async (c) => c.json(await viewOf(context, await sessionOf(context, c.req.valid("param").id)), 200),
  )

  routes.openapi(
    route({
      method: "patch",
      path: "/session/{id}",
      summary: "Change the title, or the agent and model of later prompts",
      scope: "run",
      errors: ["session.busy", "session.held", "agent.unknown", "usage", ...modelErrors],
      request: { params: sessionParams, body: body(sessionBodies.update) },
      responses: { 200: json(sessionResponses.session) },
    }),
    async (c) => {
      const change = c.req.valid("json")
      const session = await withSession(context, c.req.valid("param").id, (handle) => handle.update(change))
      return c.json(await viewOf(context, session), 200)
    },
  )

  routes.openapi(
    route({
      method: "delete",
      path: "/session/{id}",
      summary: "Delete a session with all its data",
      scope: "admin",
      errors: ["session.held"],
      request: { params: sessionParams },
      responses: { 204: { description: "Deleted" } },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const { directory } = await sessionOf(context, id)
      // The directory of an old session may no longer exist, but any engine can delete the session.
      const place = existsSync(directory) ? directory : engines.defaultDirectory
      const deleted = await engines.use(place, (tackle) => tackle.sessions.delete(id))
      if (!deleted) throw notFound("session", id)
      context.endStreams(id)
      return c.body(null, 204)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/message",
      summary: "Read the newest messages with their parts, oldest first",
      scope: "read",
      request: {
        params: sessionParams,
        query: z.strictObject({
          limit,
          before: z
            .string()
            .regex(/^msg_\w+$/, { error: "expected the id of a message" })
            .optional()
            .openapi({
              description:
                "Id of a message. If set, only messages before this message are listed. To read the next page, pass `next` from the previous page",
            }),
        }),
      },
      responses: { 200: json(page(sessionResponses.message)) },
    }),
    async (c) => {
      const { limit, before } = c.req.valid("query")
      const session = await sessionOf(context, c.req.valid("param").id)
      // An open engine's store also hides secrets that became known after the messages were stored.
      const source = engines.find(session.directory)?.store ?? store
      const found = await source.messages(session.id, { limit: limit + 1, before })
      const items = found.slice(-limit)
      const next = found.length > limit ? items[0]?.message.id : undefined
      return c.json({ items, next }, 200)
    },
  )

  return routes
}

/** Selects sessions in the directory, or in all directories that the server serves. */
function placeOf(
  { roots }: Engines,
  directory: string | undefined,
): Pick<SessionFilter, "directory" | "roots"> {
  return directory === undefined ? { roots } : { directory }
}
