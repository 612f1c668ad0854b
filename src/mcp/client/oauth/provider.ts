import type { OAuthClientMetadata, OAuthClientProvider } from "@modelcontextprotocol/client"
import type { OAuthSettings } from "../config.ts"
import { authenticateByKey } from "./key-pair.ts"
import type { TokenStore } from "./token-store.ts"

/** The server's OAuth settings, and how to reach the user. */
export interface OAuthProviderOptions {
  /** URL of the server. */
  url: string
  settings: OAuthSettings
  tokens: TokenStore
  /**
   * Set while a user signs in. Without it, the provider registers no client, and calls `requireSignIn` instead of
   * opening a page.
   */
  browser?: { redirectUrl: string; state: string; open(url: URL): void }
  /** Throws the error that asks the user to sign in. */
  requireSignIn(): never
}

/** Creates a provider that supplies the SDK's OAuth flow with the settings and the stored tokens. */
export function createOAuthProvider(options: OAuthProviderOptions): OAuthClientProvider {
  const { url, settings, tokens: store, browser, requireSignIn } = options
  const withoutUser = settings.grant === "client_credentials"
  const { clientId, clientSecret, privateKey } = settings
  let verifier = ""
  let discovery: ReturnType<NonNullable<OAuthClientProvider["discoveryState"]>>
  return {
    redirectUrl: withoutUser ? undefined : (browser?.redirectUrl ?? "http://127.0.0.1/callback"),
    clientMetadata: metadataOf(settings, browser?.redirectUrl),
    clientMetadataUrl: settings.clientMetadataUrl,
    state: () => browser?.state ?? "",
    clientInformation() {
      if (clientId !== undefined) return { client_id: clientId, client_secret: clientSecret }
      // A registration is valid for one redirect URL, including its port.
      const { client } = store.get(url)
      const registered = client && "redirect_uris" in client ? client.redirect_uris : undefined
      const fits = !browser || registered === undefined || registered.includes(browser.redirectUrl)
      return fits ? client : undefined
    },
    saveClientInformation:
      browser && clientId === undefined
        ? (client) => store.update(url, (now) => ({ ...now, client }))
        : undefined,
    addClientAuthentication:
      clientId === undefined || privateKey === undefined
        ? undefined
        : authenticateByKey({ clientId, privateKey }),
    tokens: () => store.get(url).tokens,
    saveTokens(tokens) {
      store.update(url, (now) => ({ ...now, tokens }))
    },
    redirectToAuthorization(address) {
      if (!browser) return requireSignIn()
      browser.open(address)
    },
    saveCodeVerifier(text) {
      verifier = text
    },
    codeVerifier: () => verifier,
    saveDiscoveryState(state) {
      discovery = state
    },
    discoveryState: () => discovery,
    invalidateCredentials(scope) {
      if (scope === "verifier") verifier = ""
      if (scope === "discovery" || scope === "all") discovery = undefined
      store.update(url, ({ tokens, client, ...now }) => ({
        ...now,
        tokens: scope === "tokens" || scope === "all" ? undefined : tokens,
        client: scope === "client" || scope === "all" ? undefined : client,
      }))
    },
    prepareTokenRequest: withoutUser
      ? (scope) => new URLSearchParams({ grant_type: "client_credentials", ...(scope && { scope }) })
      : undefined,
  }
}

function metadataOf({ grant, scope }: OAuthSettings, redirectUrl: string | undefined): OAuthClientMetadata {
  const client_name = "Tackle"
  if (grant === "client_credentials")
    return { client_name, redirect_uris: [], grant_types: ["client_credentials"], scope }
  return {
    client_name,
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    scope,
  }
}

/** Time limit for each OAuth request, in milliseconds. */
const answerMs = 30_000

/**
 * Returns a `fetch` for OAuth requests. The requests may go to servers other than the MCP server, so they omit the
 * headers configured for the MCP server. Requests that contain a code or a secret do not follow redirects.
 */
export function createOAuthFetch(signal: AbortSignal) {
  return (url: string | URL, init: RequestInit = {}): Promise<Response> =>
    fetch(url, {
      ...init,
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
      redirect: (init.method ?? "GET") === "GET" ? "follow" : "error",
    })
}
