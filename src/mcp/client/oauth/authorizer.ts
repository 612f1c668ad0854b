import {
  type AuthProvider,
  auth,
  extractWWWAuthenticateParams,
  type InsufficientScopeError,
} from "@modelcontextprotocol/client"
import { errorMessage } from "../../../util/errors.ts"
import type { OAuthSettings } from "../config.ts"
import { McpSignInError } from "../errors.ts"
import { createOAuthFetch } from "./oauth-fetch.ts"
import { createOAuthProvider } from "./provider.ts"
import type { TokenBook } from "./token-book.ts"

/** The server that requests go to, and where its tokens are kept. */
export interface AuthorizerOptions {
  /** Id of the server. */
  id: string
  url: string
  settings: OAuthSettings
  book: TokenBook
  /** Ends the requests that renew a token. */
  signal: AbortSignal
}

/** Stands for the person at one server. */
export interface Authorizer extends Required<AuthProvider> {
  /** The token is good, and grants too little. Always throws `McpSignInError`. */
  onInsufficientScope(error: InsufficientScopeError): never
}

type Refused = Parameters<NonNullable<AuthProvider["onUnauthorized"]>>[0]

/**
 * Gives every request to the server its token. Where one is refused it is renewed without a person, if that is possible;
 * else the request fails with `McpSignInError`, and what the server wanted is noted for `signIn`.
 */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { id, url, settings, book, signal } = options
  /** The token of the last request. */
  let used: string | undefined
  let renewing: Promise<void> | undefined

  function leave(): never {
    throw new McpSignInError(id, 'It wants you to sign in, or a key under "headers" in the configuration.')
  }

  async function renew({ response }: Refused): Promise<void> {
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    const { tokens } = book.get(url)
    // Another process renewed it meanwhile.
    if (tokens && tokens.access_token !== used) return
    const challenge = { resourceMetadataUrl: resourceMetadataUrl?.href, scope }
    book.update(url, (now) => ({ ...now, challenge }))
    if (!tokens?.refresh_token && settings.grant !== "client_credentials") leave()
    const wanted = settings.scope ?? scope
    try {
      await auth(createOAuthProvider({ url, settings, book, leave }), {
        serverUrl: url,
        ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
        ...(wanted === undefined ? {} : { scope: wanted }),
        fetchFn: createOAuthFetch(signal),
      })
    } catch (error) {
      if (error instanceof McpSignInError) throw error
      throw new McpSignInError(id, `It could not be signed in to anew: ${errorMessage(error)}.`, error)
    }
  }

  return {
    async token() {
      used = book.get(url).tokens?.access_token
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
      book.update(url, (now) => ({ ...now, challenge }))
      throw new McpSignInError(
        id,
        `It wants more rights than you gave it (${requiredScope ?? "it does not say which"}).`,
      )
    },
  }
}
