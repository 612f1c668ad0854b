import {
  type AuthProvider,
  auth,
  extractWWWAuthenticateParams,
  type InsufficientScopeError,
  type OAuthClientMetadata,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client"
import { errorMessage } from "../../../util/errors.ts"
import type { OAuthSettings } from "../config.ts"
import { McpSignInError } from "../errors.ts"
import { authenticateByKey } from "./key-pair.ts"
import type { TokenStore } from "./token-store.ts"

/** The server's OAuth settings, the token store, and the functions that involve the user. */
export interface OAuthProviderOptions {
  /** URL of the server. */
  url: string
  settings: OAuthSettings
  tokens: TokenStore
  /**
   * Settings for the sign-in page, set only while a user signs in. If undefined, the provider does not register a
   * client, and calls `requireSignIn` instead of opening a page.
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

/** The server and the token store. */
export interface AuthorizerOptions {
  /** Id of the server. */
  id: string
  url: string
  settings: OAuthSettings
  tokens: TokenStore
  /** Cancels requests that renew a token. */
  signal: AbortSignal
}

/** Authorizes the requests to one server. */
export interface Authorizer extends Required<AuthProvider> {
  /** Called if the scopes of a valid token are insufficient. Throws `McpSignInError`. */
  onInsufficientScope(error: InsufficientScopeError): never
}

type Unauthorized = Parameters<NonNullable<AuthProvider["onUnauthorized"]>>[0]

/**
 * Creates an authorizer that adds the stored token to every request. If the server rejects the token, the authorizer
 * tries to renew the token without the user. If the renewal fails, the request fails with `McpSignInError`, and the
 * server's challenge is stored for `signIn`.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { id, url, settings, tokens: store, signal } = options
  /** The token sent with the latest request. */
  let used: string | undefined
  let renewing: Promise<void> | undefined

  function requireSignIn(): never {
    throw new McpSignInError(id, 'You must sign in, or set a key under "headers" in the configuration.')
  }

  async function renew({ response }: Unauthorized): Promise<void> {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    const { tokens } = store.get(url)
    // Another process has already renewed the token.
    if (tokens && tokens.access_token !== used) return
    const challenge = { resourceMetadataUrl: resourceMetadataUrl?.href, scope }
    store.update(url, (now) => ({ ...now, challenge }))
    if (!tokens?.refresh_token && settings.grant !== "client_credentials") requireSignIn()
    try {
      await auth(createOAuthProvider({ url, settings, tokens: store, requireSignIn }), {
        serverUrl: url,
        resourceMetadataUrl,
        scope: settings.scope ?? scope,
        fetchFn: createOAuthFetch(signal),
      })
    } catch (error) {
      if (error instanceof McpSignInError) throw error
      const what = tokens ? "The stored token could not be renewed" : "No token could be obtained"
      throw new McpSignInError(id, `${what}: ${errorMessage(error)}.`, error)
    }
  }

  return {
    async token() {
      used = store.get(url).tokens?.access_token
      return used
    },
    async onUnauthorized(refused) {
      renewing ??= renew(refused).finally(() => {
        renewing = undefined
      })
      await renewing
    },
    onInsufficientScope({ requiredScope, resourceMetadataUrl }) {
      const challenge = { resourceMetadataUrl: resourceMetadataUrl?.href, scope: requiredScope }
      store.update(url, (now) => ({ ...now, challenge }))
      throw new McpSignInError(
        id,
        `The server requires more scopes than you granted (${requiredScope ?? "it does not say which"}).`,
      )
    },
  }
}
