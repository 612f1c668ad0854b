import * as z from "zod"
import type { ServerContext } from "../context.ts"
import { sessionOf } from "../context.ts"
import { notFound } from "../errors.ts"
import { createReplies } from "../replies.ts"
import { page } from "../schemas/named.ts"
import { Reply, ReplyBody, requestResponses } from "../schemas/request-schemas.ts"
import { body, createRouter, directory, directoryErrors, json, route } from "./route.ts"

/** Creates the routes for permission requests, questions and grants. */
export function requestRoutes(context: ServerContext) {
  const { engines } = context
  const replies = createReplies(context)
  const routes = createRouter()

  routes.openapi(
    route({
      method: "get",
      path: "/request",
      summary: "List the permission requests and questions that wait for the user, oldest first",
      description: "Includes the requests from runs in other processes on the same database.",
      scope: "read",
      errors: ["session.unknown", "directory.forbidden"],
      request: {
        query: z.strictObject({
          session: z.string().optional().openapi({
            description:
              "Id of a session. If set, only requests from this session and its subagents are listed",
          }),
        }),
      },
      responses: { 200: json(page(requestResponses.request)) },
    }),
    async (c) => {
      const { session } = c.req.valid("query")
      if (session !== undefined) await sessionOf(context, session)
      return c.json({ items: await replies.list(session) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/request/{id}/reply",
      summary: "Answer a permission request or a question",
      description:
        "Answers a request from any process on the same database. Only the first reply is applied. A later reply receives status 409, with the first reply in `details.first`.",
      scope: "reply",
      errors: ["request.unknown", "request.answered", "usage"],
      request: {
        params: z.object({ id: z.string().openapi({ description: "Id of the request" }) }),
        body: body(ReplyBody),
      },
      responses: { 200: json(z.object({ id: z.string(), first: Reply })) },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const reply = c.req.valid("json")
      await replies.reply(id, reply)
      return c.json({ id, first: reply }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/grant",
      summary: "List the grants for a project and its sessions",
      scope: "read",
      errors: directoryErrors,
      request: { query: z.strictObject({ directory }) },
      responses: { 200: json(page(requestResponses.grant)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      return c.json({ items: await engines.use(directory, (tackle) => tackle.grants()) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "delete",
      path: "/grant/{id}",
      summary: "Revoke a grant",
      scope: "reply",
      errors: [...directoryErrors, "grant.unknown"],
      request: {
        params: z.object({ id: z.string().openapi({ description: "Id of the grant" }) }),
        query: z.strictObject({ directory }),
      },
      responses: { 204: { description: "Revoked" } },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      await engines.use(directory, async (tackle) => {
        const grants = await tackle.grants()
        if (!grants.some((grant) => grant.id === id)) throw notFound("grant", id)
        await tackle.revoke([id])
      })
      return c.body(null, 204)
    },
  )

  return routes
}
