import { knownSecrets } from "../call/known-secrets.ts"
import type { Credentials } from "../model/credentials.ts"
import type { Secret } from "../tool/secrets.ts"
import type { TackleOptions } from "./options.ts"

/**
 * The keys and tokens to hide: those of the environment, of the options, and those that are stored. `mcpTokens` is the
 * file with the tokens of MCP servers, read only where there may be such servers.
 */
export async function readSecrets(
  { providers, secrets, search, mcp }: Pick<TackleOptions, "providers" | "secrets" | "search" | "mcp">,
  {
    environment,
    credentials,
    mcpTokens,
  }: {
    environment: Readonly<Record<string, string | undefined>>
    credentials: Pick<Credentials, "stored">
    mcpTokens: string
  },
): Promise<Secret[]> {
  const signedIn = mcp
    ? (await import("../mcp/oauth/token-book.ts")).openTokenBook(mcpTokens).secrets()
    : undefined
  const stored = { ...(await credentials.stored()), ...signedIn }
  return knownSecrets({ environment, providers, secrets, search, stored })
}
