import { createHash, randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** An MCP server that requires a token, and its authorization server. */
export interface SignInServer extends AsyncDisposable {
  /** URL of the MCP server. */
  url: string
  /** Requests in order, such as `POST /token refresh_token`. */
  asked: string[]
  /** Scopes that the sign-in page was opened with. */
  scopes: (string | null)[]
  /** Invalidates all access tokens. */
  expire(): void
  /** Invalidates all refresh tokens. */
  revoke(): void
  /** Requires this scope for tool calls from now on. */
  demand(scope: string): void
}

interface Grant {
  scope: string
  redirect: string
  challenge: string
}

/** Starts a server that follows the protocol: registration, PKCE, single use of codes and refresh tokens. */
export async function startSignInServer(): Promise<SignInServer> {
  const clients = new Map<string, string[]>()
  const codes = new Map<string, Grant>()
  const access = new Map<string, string>()
  const refresh = new Map<string, string>()
  const asked: string[] = []
  const scopes: (string | null)[] = []
  let demanded: string | undefined

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const { port } = server.address() as AddressInfo
  const origin = `http://127.0.0.1:${port}`
  const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", origin)
    const body = (await request.setEncoding("utf8").toArray()).join("")
    const form = new URLSearchParams(body)
    asked.push([request.method, url.pathname, form.get("grant_type")].filter(Boolean).join(" "))
    const json = (status: number, value: unknown, headers = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(value === undefined ? "" : JSON.stringify(value))

    if (url.href === metadata)
      return void json(200, {
        resource: `${origin}/mcp`,
        authorization_servers: [origin],
        scopes_supported: [],
      })
    if (url.pathname === "/.well-known/oauth-authorization-server")
      return void json(200, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      })
    if (url.pathname === "/register") {
      const id = randomUUID()
      const { redirect_uris } = JSON.parse(body)
      clients.set(id, redirect_uris)
      return void json(201, { client_id: id, redirect_uris })
    }
    if (url.pathname === "/authorize") return authorize(url.searchParams, response)
    if (url.pathname === "/token") return void json(...exchange(form))
    if (url.pathname === "/mcp") return void json(...serve(request, body))
    json(404, {})
  }

  function authorize(params: URLSearchParams, response: ServerResponse): void {
    const redirect = params.get("redirect_uri") ?? ""
    scopes.push(params.get("scope"))
    const known = clients.get(params.get("client_id") ?? "")?.includes(redirect)
    if (!known || params.get("code_challenge_method") !== "S256") return void response.writeHead(400).end()
    const code = randomUUID()
    codes.set(code, {
      scope: params.get("scope") ?? "",
      redirect,
      challenge: params.get("code_challenge") ?? "",
    })
    const back = new URL(redirect)
    back.search = new URLSearchParams({ code, state: params.get("state") ?? "", iss: origin }).toString()
    response.writeHead(302, { location: back.href }).end()
  }

  function exchange(form: URLSearchParams): [number, unknown] {
    const scope = form.get("grant_type") === "refresh_token" ? renew(form) : redeem(form)
    if (scope === undefined) return [400, { error: "invalid_grant" }]
    const tokens = { access_token: randomUUID(), refresh_token: randomUUID() }
    access.set(tokens.access_token, scope)
    refresh.set(tokens.refresh_token, scope)
    return [200, { ...tokens, token_type: "Bearer", expires_in: 3600, scope }]
  }

  function redeem(form: URLSearchParams): string | undefined {
    const code = form.get("code") ?? ""
    const grant = codes.get(code)
    codes.delete(code)
    const proof = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url")
    return grant?.challenge === proof && grant.redirect === form.get("redirect_uri") ? grant.scope : undefined
  }

  function renew(form: URLSearchParams): string | undefined {
    const token = form.get("refresh_token") ?? ""
    const scope = refresh.get(token)
    refresh.delete(token)
    return scope
  }

  function serve({ headers, method: verb }: IncomingMessage, body: string): [number, unknown, object?] {
    const scope = access.get((headers.authorization ?? "").replace(/^Bearer /, ""))
    const challenge = `Bearer resource_metadata="${metadata}"`
    if (scope === undefined) return [401, {}, { "www-authenticate": challenge }]
    if (verb !== "POST") return [405, {}]
    const { id, method, params } = JSON.parse(body)
    if (method === "tools/call" && demanded !== undefined && !scope.split(" ").includes(demanded))
      return [
        403,
        {},
        { "www-authenticate": `${challenge}, error="insufficient_scope", scope="${demanded}"` },
      ]
    if (id === undefined) return [202, undefined]
    return [200, { jsonrpc: "2.0", id, result: resultOf(method, params) }]
  }

  return {
    url: `${origin}/mcp`,
    asked,
    scopes,
    expire: () => access.clear(),
    revoke: () => refresh.clear(),
    demand(scope) {
      demanded = scope
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

function resultOf(method: string, params: { protocolVersion?: string }): unknown {
  if (method === "initialize")
    return {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "closed", version: "1" },
    }
  if (method === "tools/list")
    return { tools: [{ name: "greet", description: "Says hello.", inputSchema: { type: "object" } }] }
  return { content: [{ type: "text", text: "hello" }] }
}
