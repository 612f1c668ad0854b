import type { StoredOAuthClientInformation, StoredOAuthTokens } from "@modelcontextprotocol/client"
import * as z from "zod"
import { readPrivateFile, updatePrivateFile } from "../../../store/private-file.ts"
import { isRecord } from "../../../util/json.ts"

/** Stored result of signing in to a server. */
export interface SignedIn {
  tokens?: StoredOAuthTokens
  /** The OAuth client that the server registered. */
  client?: StoredOAuthClientInformation
  /** The server's latest challenge: the URL of its metadata and the scopes that it requires. */
  challenge?: { resourceMetadataUrl?: string; scope?: string }
}

/** Tokens keyed by server URL. A token is sent only to the MCP server that it was issued for. */
export interface TokenStore {
  /** Returns a server's entry. Reads the file on each call, because another process may have signed in. */
  get(url: string): SignedIn
  /**
   * Stores the result of `change`, or deletes the entry if the result is undefined. Throws `TackleError` if the file
   * cannot be written.
   */
  update(url: string, change: (now: SignedIn) => SignedIn | undefined): void
  /** Returns all tokens and secrets, keyed by name, so that they can be hidden in output. */
  secrets(): Record<string, string>
}

const Entry = z.object({
  tokens: z
    .looseObject({
      access_token: z.string(),
      token_type: z.string(),
      expires_in: z.number().optional(),
      scope: z.string().optional(),
      refresh_token: z.string().optional(),
      issuer: z.string().optional(),
    })
    .optional(),
  client: z.looseObject({ client_id: z.string(), client_secret: z.string().optional() }).optional(),
  challenge: z.object({ resourceMetadataUrl: z.url().optional(), scope: z.string().optional() }).optional(),
})

/**
 * Opens the file `mcp-auth.json` in the data directory. Only the user can read this file. Calls `onSecrets` with the
 * tokens and secrets, keyed by name, at each read and write, because they can change.
 */
export function openTokenStore(
  path: string,
  onSecrets?: (secrets: Record<string, string>) => void,
): TokenStore {
  const read = (value: unknown): Record<string, unknown> =>
    Object.assign(Object.create(null), isRecord(value) ? value : {})
  const load = () => read(readPrivateFile(path))

  return {
    get(url) {
      const entry = entryOf(load()[url])
      onSecrets?.(secretsOf(url, entry))
      return entry
    },
    update(url, change) {
      updatePrivateFile(path, "mcp.tokens", (stored) => {
        const { [url]: now, ...others } = read(stored)
        const changed = change(entryOf(now))
        if (changed) onSecrets?.(secretsOf(url, changed))
        return changed === undefined ? others : { ...others, [url]: changed }
      })
    },
    secrets() {
      const found: Record<string, string> = Object.create(null)
      for (const [url, value] of Object.entries(load())) Object.assign(found, secretsOf(url, entryOf(value)))
      return found
    },
  }
}

function secretsOf(url: string, { tokens, client }: SignedIn): Record<string, string> {
  const found: Record<string, string> = Object.create(null)
  if (tokens) found[`${url} access`] = tokens.access_token
  if (tokens?.refresh_token !== undefined) found[`${url} refresh`] = tokens.refresh_token
  if (client?.client_secret !== undefined) found[`${url} client`] = client.client_secret
  return found
}

/** Parses an entry. An invalid entry is treated as empty. */
function entryOf(value: unknown): SignedIn {
  const { data } = Entry.safeParse(value ?? {})
  return data ?? {}
}
