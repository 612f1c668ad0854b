import {
  type AuthProvider,
  auth,
  extractWWWAuthenticateParams,
  type InsufficientScopeError,
} from "@modelcontextprotocol/client"
import { errorMessage } from "../../../util/errors.ts"
import type { OAuthSettings } from "../config.ts"
import { McpSignInError } from "../errors.ts"
import { createOAuthFetch, createOAuthProvider } from "./provider.ts"
import type { TokenStore } from "./token-store.ts"

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
  /** Handles a valid token with insufficient scopes. Always throws `McpSignInError`. */
  onInsufficientScope(error: InsufficientScopeError): never
}

type Unauthorized = Parameters<NonNullable<AuthProvider["onUnauthorized"]>>[0]

/**
 * Adds the token to every request. If the server refuses a token, tries to renew it without the user. If the token
 * cannot be renewed, the request fails with `McpSignInError`, and the server's challenge is stored for `signIn`.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { id, url, settings, tokens: store, signal } = options
  /** The token of the last request. */
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
      throw new McpSignInError(id, `The stored token could not be renewed: ${errorMessage(error)}.`, error)
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
