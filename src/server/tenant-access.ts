import type { MiddlewareHandler } from "hono"
import type { ServerContext } from "./context.ts"
import { notFound, ServerError } from "./errors.ts"
import type { ServerEnvironment } from "./guard.ts"

/**
 * Routes that a token with a tenant may use in addition to the routes for the tenant's sessions. These routes do not
 * read or change sessions.
 */
const sharedRoutes =
  /^GET \/(health|docs|openapi\.json|assets\/.*|root|tool|agent|command|skill|model|mcp)?$|^POST \/(login|logout|ticket)$/

/** Routes that create, list and follow sessions. These routes enforce the token's tenant themselves. */
const ownRoutes = /^(GET|POST) \/session$|^POST \/session\/import$|^GET \/event$/

/**
 * Creates middleware that lets a token with a tenant use only this tenant's sessions. Responds as if other sessions did
 * not exist. Denies every route that is not known to enforce the tenant.
 */
export function keepTenantsApart({ store, engines }: ServerContext): MiddlewareHandler<ServerEnvironment> {
  async function assertOwn(sessionID: string, tenant: string): Promise<void> {
    const session = await store.session(sessionID)
    if (session?.tenant !== tenant) throw notFound("session", sessionID)
  }

  async function sessionOfRequest(requestID: string): Promise<string | undefined> {
    const stored = await store.request(requestID)
    if (stored) return stored.asked.sessionID
    const waiting = engines
      .all()
      .flatMap((tackle) => [...tackle.pendingRequests(), ...tackle.questions.pending()])
    return waiting.find(({ id }) => id === requestID)?.sessionID
  }

  return async (c, next) => {
    // Public routes need no token.
    const tenant = (c.get("token") as ServerEnvironment["Variables"]["token"] | undefined)?.tenant
    if (tenant === undefined) return next()
    const { method, path } = c.req
    const route = `${method} ${path}`
    if (sharedRoutes.test(route) || ownRoutes.test(route)) return next()
    const [, sessionID] = /^\/session\/(\w+)(?:\/|$)/.exec(path) ?? []
    const asked = route === "GET /request" ? c.req.query("session") : sessionID
    if (asked !== undefined) {
      await assertOwn(asked, tenant)
      return next()
    }
    const [, requestID] = /^POST \/request\/(\w+)\/reply$/.exec(route) ?? []
    if (requestID === undefined)
      throw new ServerError(
        route === "GET /request"
          ? "For a token with a tenant, GET /request needs the query parameter `session`."
          : `A token with a tenant cannot use ${route}. Use a token without a tenant.`,
        { code: "tenant.forbidden" },
      )
    const owner = await sessionOfRequest(requestID)
    if (owner === undefined) throw notFound("request", requestID)
    await assertOwn(owner, tenant)
    return next()
  }
}
