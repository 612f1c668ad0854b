import type { IncomingMessage, ServerResponse } from "node:http"
import { isIP } from "node:net"
import { hostname } from "node:os"
import type { Context, MiddlewareHandler } from "hono"
import { isLoopback, loopbackHosts } from "../util/local-server.ts"
import { ServerError, unsupportedType } from "./errors.ts"
import { type Authenticator, includes, type Scope, type Token } from "./tokens.ts"

/** Data for a Hono request: Node's request and response, and the token, which the guard sets. */
export interface ServerEnvironment {
  Bindings: { incoming: IncomingMessage; outgoing: ServerResponse }
  Variables: { token: Token }
}

/** Requirements for every request. */
export interface GuardOptions {
  /** Address on which the server listens. */
  host: string
  /** Origins of web pages that may use the server, such as `https://tackle.example.com`. */
  origins: readonly string[]
  authenticator: Authenticator
  /** Maximum body size in bytes. */
  maxBodyBytes: number
  /** Maximum number of concurrent requests per token, including event streams. */
  maxRequests: number
}

/** Paths that do not need a token, because they return no user data or check a ticket instead. */
const publicPaths: readonly string[] = ["/", "/health", "/openapi.json", "/docs", "/login", "/logout"]

function isPublic(path: string): boolean {
  return publicPaths.includes(path) || path.startsWith("/assets/")
}

const responseHeaders: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
}

/**
 * Creates middleware that checks the host, origin, method and body of every request, and, unless the path is public,
 * the token. Checking `Host` and `Origin` blocks web pages whose domain resolves to this machine.
 */
export function guard(options: GuardOptions): MiddlewareHandler<ServerEnvironment> {
  const hosts = allowedHosts(options)
  const isWide = !isLoopback(options.host)
  return async (c, next) => {
    for (const [name, value] of Object.entries(responseHeaders)) c.header(name, value)
    const { headers } = c.env.incoming
    assertHost(headers.host ?? "", hosts, isWide)
    const isCors = assertOrigin(headers.origin, headers.host ?? "", options.origins)
    if (isCors) allowOrigin(c, headers.origin ?? "")
    if (c.req.method === "OPTIONS" && isCors) return c.body(null, 204)
    assertMethod(c.env.incoming.method ?? "")
    if (!isPublic(c.req.path)) await assertToken(c, options)
    await readBody(c, options.maxBodyBytes)
    await next()
  }
}

/** Creates middleware that rejects a request if its token's scope does not include the given scope. */
export function requires(scope: Scope): MiddlewareHandler<ServerEnvironment> {
  return async (c, next) => {
    const { scope: present } = c.get("token")
    if (!includes(present, scope))
      throw new ServerError(
        `This request needs a token with the scope "${scope}". The token has the scope "${present}".`,
        { code: "scope.insufficient", details: { required: scope, scope: present } },
      )
    await next()
  }
}

/**
 * Returns the host names that the `Host` header may contain. They include the hosts of the allowed origins, because a
 * reverse proxy may forward its own host name.
 */
function allowedHosts({ host, origins }: GuardOptions): ReadonlySet<string> {
  const own = isLoopback(host) ? [] : [nameIn(host), hostname().toLowerCase()]
  return new Set([...loopbackHosts, ...own, ...origins.map((origin) => new URL(origin).hostname)])
}

/**
 * Throws if the host is not allowed. If the server does not listen on a loopback address, any IP address is allowed
 * too, because an attacker cannot register an IP address as a domain name.
 */
function assertHost(header: string, hosts: ReadonlySet<string>, isWide: boolean): void {
  const name = nameIn(header)
  if (hosts.has(name) || (isWide && isIP(name.replace(/^\[|\]$/g, "")) !== 0)) return
  throw new ServerError(
    `Requests for the host ${JSON.stringify(name)} are not served. Use ${isWide ? "the IP address of the server" : "127.0.0.1 or localhost"}, or allow the origin of your proxy with --cors.`,
    { code: "host.forbidden" },
  )
}

function nameIn(host: string): string {
  return host.toLowerCase().replace(/(?<=^[^:]*|\]):\d+$/, "")
}

/**
 * Returns true if the request comes from a page on an allowed origin, and false if it comes from a page on this server
 * or from no page. Throws for a page on any other origin.
 */
function assertOrigin(origin: string | undefined, host: string, origins: readonly string[]): boolean {
  if (origin === undefined || isOwnOrigin({ origin, host })) return false
  if (origins.includes(origin)) return true
  throw new ServerError(`Requests from pages on ${origin} are not served. Allow the origin with --cors.`, {
    code: "origin.forbidden",
  })
}

/**
 * Rejects unsupported methods, including HEAD: Hono would handle it like GET and open an event stream that nothing
 * reads.
 */
function assertMethod(method: string): void {
  if (["GET", "POST", "PATCH", "DELETE"].includes(method)) return
  throw new ServerError(`The method ${method} is not supported. Use GET, POST, PATCH or DELETE.`, {
    code: "method.unsupported",
    headers: { allow: "GET, POST, PATCH, DELETE" },
  })
}

function allowOrigin(c: Context<ServerEnvironment>, origin: string): void {
  c.header("access-control-allow-origin", origin)
  c.header("access-control-allow-headers", "authorization, content-type, last-event-id")
  c.header("access-control-allow-methods", "GET, POST, PATCH, DELETE")
  c.header("access-control-max-age", "600")
  c.header("cross-origin-resource-policy", "cross-origin")
  c.header("vary", "origin")
}

async function assertToken(
  c: Context<ServerEnvironment>,
  { authenticator, maxRequests }: GuardOptions,
): Promise<void> {
  const authorization = c.req.header("authorization")
  const cookie = authorization === undefined ? cookieIn(c.env.incoming) : undefined
  if (cookie !== undefined) assertOwnPage(c.env.incoming)
  const token =
    cookie === undefined
      ? await authenticator.authenticate(authorization)
      : await authenticator.authenticateCookie(cookie)
  if (!token)
    throw new ServerError(
      'The token is missing or wrong. Send the header "Authorization: Bearer <token>" with a token from the token file.',
      { code: "token.invalid", headers: { "www-authenticate": "Bearer" } },
    )
  if (token.open >= maxRequests)
    throw new ServerError(
      `The token has ${maxRequests} open requests, which is the maximum. Close some of them, then try again.`,
      {
        code: "token.busy",
        headers: { "retry-after": "1" },
      },
    )
  token.open += 1
  c.env.outgoing.once("close", () => {
    token.open -= 1
  })
  c.set("token", token)
}

/**
 * Returns the login cookie's name. The name contains the port, because browsers share cookies between all ports of a
 * host.
 */
export function cookieName({ socket }: IncomingMessage): string {
  return `tackle-${socket.localPort ?? 0}`
}

function cookieIn(incoming: IncomingMessage): string | undefined {
  const prefix = `${cookieName(incoming)}=`
  const cookies = (incoming.headers.cookie ?? "").split(";").map((cookie) => cookie.trim())
  return cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length)
}

/**
 * Throws unless a request with a cookie comes from a page on this server, because browsers also send the cookie with
 * requests from pages on other ports of the same host.
 */
function assertOwnPage({ headers, method }: IncomingMessage): void {
  const site = headers["sec-fetch-site"]
  const isOwn = site === undefined ? method === "GET" || isOwnOrigin(headers) : site === "same-origin"
  if (isOwn) return
  throw new ServerError(
    "The login cookie is accepted only in requests from this server's own pages. Send a token instead.",
    {
      code: "origin.forbidden",
    },
  )
}

function isOwnOrigin({ origin, host = "" }: IncomingMessage["headers"]): boolean {
  return origin === `http://${host.toLowerCase()}`
}

/**
 * Reads the body. Throws `ServerError` if the body is not sent as JSON or is larger than `maxBytes`, even if the
 * request has no `Content-Length`.
 */
async function readBody(c: Context<ServerEnvironment>, maxBytes: number): Promise<void> {
  const { headers } = c.env.incoming
  const length = Number(headers["content-length"] ?? 0)
  if (length === 0 && headers["transfer-encoding"] === undefined) return setBody(c, "{}")
  if (length > maxBytes) throw tooLarge(maxBytes)
  if (!/^application\/json(\s*;|$)/i.test(headers["content-type"] ?? "")) throw unsupportedType()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    // Leaving the loop early must not destroy the stream, because the response uses the same connection.
    for await (const chunk of c.env.incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge(maxBytes)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof ServerError) throw error
    throw new ServerError("The connection was closed before the body was complete.", {
      code: "request.invalid",
    })
  }
  setBody(c, Buffer.concat(chunks).toString("utf8") || "{}")
}

/** Sets the text that routes parse as the request body. */
function setBody(c: Context, text: string): void {
  // Hono also accepts promises here, although its types do not.
  c.req.bodyCache.text = Promise.resolve(text) as never
}

function tooLarge(maxBytes: number): ServerError {
  return new ServerError(`The body is larger than ${maxBytes} bytes.`, {
    code: "body.too-large",
    // The rest of the body is not read, so the connection cannot be used again.
    headers: { connection: "close" },
  })
}
