import type { OAuthClientMetadata, OAuthClientProvider } from "@modelcontextprotocol/client"
import type { OAuthSettings } from "../config.ts"
import { proveByKey } from "./key-pair.ts"
import type { TokenBook } from "./token-book.ts"

/** For which server, and whether a person is there to sign in. */
export interface OAuthProviderOptions {
  /** Address of the server. */
  url: string
  settings: OAuthSettings
  book: TokenBook
  /** Set where a person signs in now. Without it nothing is registered, and `leave` is called in place of the browser. */
  browser?: { redirectUrl: string; state: string; open(url: URL): void }
  /** Throws what is to be said where a person has to sign in. */
  leave(): never
}

/** What the SDK's flow asks us: who we are, what we know, and where a person signs in. Tokens are kept in the book. */
export function createOAuthProvider(options: OAuthProviderOptions): OAuthClientProvider {
  const { url, settings, book, browser, leave } = options
  const byItself = settings.grant === "client_credentials"
  const metadata = metadataOf(settings, browser?.redirectUrl)
  const { clientId, clientSecret, privateKey } = settings
  let verifier = ""
  let discovery: ReturnType<NonNullable<OAuthClientProvider["discoveryState"]>>
  return {
    redirectUrl: byItself ? undefined : (browser?.redirectUrl ?? "http://127.0.0.1/callback"),
    clientMetadata: metadata,
    ...(settings.clientMetadataUrl === undefined ? {} : { clientMetadataUrl: settings.clientMetadataUrl }),
    state: () => browser?.state ?? "",
    clientInformation() {
      if (clientId !== undefined)
        return { client_id: clientId, ...(clientSecret === undefined ? {} : { client_secret: clientSecret }) }
      // A registration holds for the port that it was made with.
      const { client } = book.get(url)
      const registered = client && "redirect_uris" in client ? client.redirect_uris : undefined
      const fits = !browser || registered === undefined || registered.includes(browser.redirectUrl)
      return fits ? client : undefined
    },
    ...(browser && clientId === undefined
      ? {
          saveClientInformation(client) {
            book.update(url, (now) => ({ ...now, client }))
          },
        }
      : {}),
    ...(clientId === undefined || privateKey === undefined
      ? {}
      : { addClientAuthentication: proveByKey({ clientId, privateKey }) }),
    tokens: () => book.get(url).tokens,
    saveTokens(tokens) {
      book.update(url, (now) => ({ ...now, tokens }))
    },
    redirectToAuthorization(address) {
      if (!browser) return leave()
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
      book.update(url, ({ tokens, client, ...now }) => ({
        ...now,
        ...(scope === "tokens" || scope === "all" ? {} : { tokens }),
        ...(scope === "client" || scope === "all" ? {} : { client }),
      }))
    },
    ...(byItself
      ? {
          prepareTokenRequest: (scope) =>
            new URLSearchParams({ grant_type: "client_credentials", ...(scope ? { scope } : {}) }),
        }
      : {}),
  }
}

function metadataOf({ grant, scope }: OAuthSettings, redirectUrl: string | undefined): OAuthClientMetadata {
  const asked = scope === undefined ? {} : { scope }
  const client_name = "Tackle"
  if (grant === "client_credentials")
    return { client_name, redirect_uris: [], grant_types: ["client_credentials"], ...asked }
  return {
    client_name,
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    ...asked,
  }
}
