import type { StoredOAuthClientInformation, StoredOAuthTokens } from "@modelcontextprotocol/client"
import * as z from "zod"
import { readPrivateFile, updatePrivateFile } from "../../../store/private-file.ts"
import { isRecord } from "../../../util/json.ts"

/** What is known of signing in to a server. */
export interface SignedIn {
  tokens?: StoredOAuthTokens | undefined
  /** As the server registered us. */
  client?: StoredOAuthClientInformation | undefined
  /** What the server said when it last refused us: where its metadata are, and which rights it wants. */
  challenge?: { resourceMetadataUrl?: string | undefined; scope?: string | undefined } | undefined
}

/** By the addresses of servers: a token goes to none but the one that it was given for. */
export interface TokenBook {
  /** Reads the file anew: another process may have signed in. */
  get(url: string): SignedIn
  /** Writes what `change` makes of it; undefined removes it. Throws `TackleError` where the file cannot be written. */
  update(url: string, change: (now: SignedIn) => SignedIn | undefined): void
  /** All tokens and secrets by what they are, to be hidden. */
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
 * The book in `mcp-auth.json` of the data directory, which nobody else may read. `onSecrets` gets the tokens and secrets
 * whenever they are read or written, by what they are: they may be other ones since.
 */
export function openTokenBook(
  path: string,
  onSecrets?: (secrets: Record<string, string>) => void,
): TokenBook {
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

/** An entry that cannot be understood knows nothing. */
function entryOf(value: unknown): SignedIn {
  const { data } = Entry.safeParse(value ?? {})
  return data ?? {}
}
