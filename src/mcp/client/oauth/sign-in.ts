import { randomBytes } from "node:crypto"
import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client"
import { UsageError } from "../../../util/errors.ts"
import type { RemoteServer } from "../config.ts"
import { listenForCallback } from "./callback.ts"
import { createOAuthFetch } from "./oauth-fetch.ts"
import { createOAuthProvider } from "./provider.ts"
import type { SignedIn, TokenBook } from "./token-book.ts"

/** The server, and the way to the person. */
export interface SignInOptions {
  server: RemoteServer
  book: TokenBook
  /** Shows the person the page on which they sign in: its address is http or https. */
  open(url: URL): void
  /** Fires to give up. */
  signal: AbortSignal
}

/**
 * Signs a person in: they are sent to the server's page, and their browser comes back to 127.0.0.1. The tokens are in the
 * book afterwards; what was there stays until then. Throws `UsageError` for a server that wants no signing in,
 * `TackleError` where it refuses, and the signal's reason.
 */
export async function signIn({ server, book, open, signal }: SignInOptions): Promise<void> {
  const { url, oauth: settings = {} } = server
  if (settings === false) throw new UsageError('Signing in is switched off for it ("oauth": false).')
  const fetchFn = createOAuthFetch(signal)
  const state = randomBytes(32).toString("base64url")
  await using callback = await listenForCallback({ port: settings.redirectPort ?? 0, state })
  const browser = { redirectUrl: callback.url, state, open: (address: URL) => open(checked(address)) }
  const leave = () => {
    throw new UsageError("It wants a person to sign in.")
  }
  const provider = createOAuthProvider({ url, settings, book, browser, leave })
  const challenge = book.get(url).challenge ?? (await askChallenge(server, fetchFn))
  const scope = settings.scope ?? scopeOf(book.get(url), challenge)
  const common = {
    serverUrl: url,
    ...(challenge?.resourceMetadataUrl === undefined
      ? {}
      : { resourceMetadataUrl: new URL(challenge.resourceMetadataUrl) }),
    ...(scope === undefined ? {} : { scope }),
    fetchFn,
  }
  const begun = await auth(provider, { ...common, forceReauthorization: true })
  if (begun === "REDIRECT") {
    const answer = await callback.answer(signal)
    const iss = answer.get("iss")
    await auth(provider, {
      ...common,
      authorizationCode: answer.get("code") ?? "",
      ...(iss === null ? {} : { iss }),
    })
  }
  book.update(url, ({ challenge: _met, ...now }) => now)
}

/** Forgets what was kept of a server. False: there was nothing. The server itself is not told. */
export function signOut({ url }: RemoteServer, book: TokenBook): boolean {
  const { tokens, client } = book.get(url)
  book.update(url, () => undefined)
  return tokens !== undefined || client !== undefined
}

/** What the server says to a stranger. Undefined: it does not turn strangers away, at least not at once. */
async function askChallenge(
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

/** What is wanted now, with what was granted before: signing in for more does not lose the rest. */
function scopeOf({ tokens }: SignedIn, challenge: SignedIn["challenge"]): string | undefined {
  if (challenge?.scope === undefined) return undefined
  return [...new Set(`${tokens?.scope ?? ""} ${challenge.scope}`.trim().split(/\s+/))].join(" ")
}

/** A server could name anything, and what opens pages opens files and programs too. */
function checked(url: URL): URL {
  const local = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname)
  if (url.protocol === "https:" || (url.protocol === "http:" && local)) return url
  throw new UsageError(`Its page for signing in, ${url.origin}, is not on https, so nobody is sent there.`)
}
