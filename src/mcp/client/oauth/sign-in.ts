import { randomBytes } from "node:crypto"
import { createServer } from "node:http"
import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client"
import { orAbort } from "../../../util/abort.ts"
import { TackleError, UsageError } from "../../../util/errors.ts"
import type { RemoteServer } from "../config.ts"
import { createOAuthFetch, createOAuthProvider } from "./provider.ts"
import type { SignedIn, TokenStore } from "./token-store.ts"

/** The server, the token store, and a function that shows the sign-in page. */
export interface SignInOptions {
  server: RemoteServer
  tokens: TokenStore
  /** Shows the sign-in page to the user. The URL uses https, or http on this machine. */
  open(url: URL): void
  /** Cancels the sign-in. */
  signal: AbortSignal
}

/**
 * Signs the user in. Opens the server's page, waits until the browser returns to 127.0.0.1, and stores the tokens. The
 * previous tokens are kept until then. Throws `UsageError` if OAuth is disabled or the page does not use https, and
 * `TackleError` if the server refuses the sign-in. Also rejects if an OAuth request fails or the signal aborts.
 */
export async function signIn({ server, tokens: store, open, signal }: SignInOptions): Promise<void> {
  const { url, oauth: settings = {} } = server
  if (settings === false)
    throw new UsageError('Signing in to this server is disabled by "oauth": false in the configuration.')
  const fetchFn = createOAuthFetch(signal)
  const state = randomBytes(32).toString("base64url")
  await using callback = await listenForCallback({ port: settings.redirectPort ?? 0, state })
  const browser = { redirectUrl: callback.url, state, open: (address: URL) => open(checked(address)) }
  const requireSignIn = () => {
    throw new UsageError("The server requires a user to sign in.")
  }
  const provider = createOAuthProvider({ url, settings, tokens: store, browser, requireSignIn })
  const challenge = store.get(url).challenge ?? (await fetchChallenge(server, fetchFn))
  const metadataUrl = challenge?.resourceMetadataUrl
  const common = {
    serverUrl: url,
    resourceMetadataUrl: metadataUrl === undefined ? undefined : new URL(metadataUrl),
    scope: settings.scope ?? scopeOf(store.get(url), challenge),
    fetchFn,
  }
  const begun = await auth(provider, { ...common, forceReauthorization: true })
  if (begun === "REDIRECT") {
    const answer = await callback.answer(signal)
    const iss = answer.get("iss") ?? undefined
    await auth(provider, { ...common, authorizationCode: answer.get("code") ?? "", iss })
  }
  store.update(url, ({ challenge: _done, ...now }) => now)
}

/**
 * Deletes a server's tokens and registered client without notifying the server. Returns false if neither was stored.
 */
export function signOut({ url }: RemoteServer, store: TokenStore): boolean {
  const { tokens, client } = store.get(url)
  store.update(url, () => undefined)
  return tokens !== undefined || client !== undefined
}

/**
 * Sends a request without a token and returns the server's challenge, or undefined if the server answers with a status
 * other than 401.
 */
async function fetchChallenge(
  { url, headers }: RemoteServer,
  fetchFn: ReturnType<typeof createOAuthFetch>,
): Promise<SignedIn["challenge"]> {
  const response = await fetchFn(url, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "ping" }),
  })
  await response.body?.cancel()
  if (response.status !== 401) return undefined
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
  return { resourceMetadataUrl: resourceMetadataUrl?.href, scope }
}

/** Returns the required scopes together with the scopes already granted, so that no scope is lost. */
function scopeOf({ tokens }: SignedIn, challenge: SignedIn["challenge"]): string | undefined {
  if (challenge?.scope === undefined) return undefined
  return [...new Set(`${tokens?.scope ?? ""} ${challenge.scope}`.trim().split(/\s+/))].join(" ")
}

/**
 * Returns the URL if it is safe to open, or throws `UsageError`. This check is needed because the server chooses the
 * URL, and the program that opens URLs can also open files and programs.
 */
function checked(url: URL): URL {
  const local = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname)
  if (url.protocol === "https:" || (url.protocol === "http:" && local)) return url
  const page = url.host === "" ? url.protocol : `${url.protocol}//${url.host}`
  throw new UsageError(`The server's sign-in page (${page}) does not use https, so it was not opened.`)
}

/** A local server that receives the browser's redirect. */
export interface Callback extends AsyncDisposable {
  url: string
  /**
   * Waits for the redirect. Throws `TackleError` if the redirect contains an error or no code. Throws the error of
   * `abortedError` if the signal aborts.
   */
  answer(signal: AbortSignal): Promise<URLSearchParams>
}

/**
 * Listens on 127.0.0.1 for the browser's redirect. Port 0 selects any free port. Accepts only a redirect with the given
 * `state`. Rejects if the port is in use.
 */
export async function listenForCallback({ port, state }: { port: number; state: string }): Promise<Callback> {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>()
  const server = createServer((request, response) => {
    // `URL.parse` returns null for an invalid URL, which any local program can request.
    const asked = URL.parse(request.url ?? "/", "http://127.0.0.1")
    const ours = asked?.pathname === "/callback" && asked.searchParams.get("state") === state
    response.writeHead(ours ? 200 : 404, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
    })
    response.end(ours ? "You can close this page and return to Tackle.\n" : "Not found.\n")
    if (ours) resolve(asked.searchParams)
  })
  await new Promise<void>((listening, failed) => {
    server.once("error", failed)
    server.listen(port, "127.0.0.1", listening)
  })
  const address = server.address()
  const bound = typeof address === "object" ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${bound}/callback`,
    async answer(signal) {
      const params = await orAbort(promise, signal)
      if (params.has("code")) return params
      throw new TackleError(`The server did not sign you in (${params.get("error") ?? "it sent no code"}).`, {
        code: "mcp.sign-in-refused",
        recoverable: false,
      })
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
