import { knownSecrets } from "../call/known-secrets.ts"
import type { Credentials } from "../model/credentials.ts"
import { createSecretMask, type SecretMask } from "../tool/secrets.ts"
import type { TackleOptions } from "./options.ts"

/**
 * Hides keys and tokens: those of the environment, of the options, and those that are stored. Undefined where there is
 * nothing to hide. `mcpTokens` is the file with the tokens of MCP servers, read only where there may be such servers.
 */
export async function openSecretMask(
  { providers, secrets, search, mcp }: TackleOptions,
  {
    environment,
    credentials,
    mcpTokens,
  }: {
    environment: Readonly<Record<string, string | undefined>>
    credentials: Pick<Credentials, "stored">
    mcpTokens: string
  },
): Promise<SecretMask | undefined> {
  const signedIn = mcp
    ? (await import("../mcp/oauth/token-book.ts")).openTokenBook(mcpTokens).secrets()
    : undefined
  const stored = { ...(await credentials.stored()), ...signedIn }
  return createSecretMask(knownSecrets({ environment, providers, secrets, search, stored }))
}
