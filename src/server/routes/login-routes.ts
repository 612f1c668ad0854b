import { createRoute } from "@hono/zod-openapi"
import type { Context } from "hono"
import * as z from "zod"
import { ServerError } from "../errors.ts"
import { cookieName, type ServerEnvironment } from "../guard.ts"
import { cookieSeconds, ticketSeconds } from "../logins.ts"
import type { Authenticator } from "../tokens.ts"
import { body, bodyErrors, createRouter, errorResponses, json, publicErrors, route } from "./route.ts"

const Ticket = z.strictObject({ ticket: z.string() }).openapi("Login")

/** Creates the routes that log this server's web page in and out. */
export function loginRoutes(authenticator: Authenticator) {
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/ticket",
      summary: "Create a ticket for a single login to the web page",
      description: `Put the ticket into the fragment of the page's URL: \`/#ticket=…\`. The ticket is valid for ${ticketSeconds} seconds and has the token's scope.`,
      scope: "read",
      responses: { 201: json(z.object({ ticket: z.string() })) },
    }),
    (c) => c.json({ ticket: authenticator.ticketFor(c.get("token")) }, 201),
  )

  routes.openapi(
    createRoute({
      method: "post",
      path: "/login",
      summary: "Exchange a ticket for a cookie",
      description: "Needs no token. The cookie is accepted only in requests from this server's own pages.",
      request: { body: body(Ticket) },
      responses: {
        204: { description: "The response sets the cookie" },
        ...errorResponses(["ticket.invalid", "request.invalid", ...bodyErrors, ...publicErrors]),
      },
    }),
    async (c) => {
      const cookie = await authenticator.login(c.req.valid("json").ticket)
      if (cookie === undefined)
        throw new ServerError("The ticket is unknown, used or expired. Create another one.", {
          code: "ticket.invalid",
        })
      setCookie(c, cookie, cookieSeconds)
      return c.body(null, 204)
    },
  )

  routes.openapi(
    createRoute({
      method: "post",
      path: "/logout",
      summary: "Remove the cookie",
      description: "Needs no token.",
      responses: { 204: { description: "The response removes the cookie" }, ...errorResponses(publicErrors) },
    }),
    (c) => {
      setCookie(c, "", 0)
      return c.body(null, 204)
    },
  )

  return routes
}

/** Sets the login cookie. If the page came over HTTPS, the browser never sends the cookie without encryption. */
function setCookie(c: Context<ServerEnvironment>, value: string, seconds: number): void {
  const name = cookieName(c.env.incoming)
  // The server itself speaks HTTP. The guard accepts an HTTPS origin only if it is configured, for example as the
  // origin of a proxy.
  const secure = c.env.incoming.headers.origin?.startsWith("https://") ? "; Secure" : ""
  c.header("set-cookie", `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`)
}
