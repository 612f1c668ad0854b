import { knownSecrets } from "../call/known-secrets.ts"
import type { Credentials } from "../model/credentials.ts"
import type { Secret } from "../tool/secrets.ts"
import type { TackleOptions } from "./options.ts"

/**
 * The keys and tokens to hide: those of the environment, of the options, and those that are stored. `mcpTokens` is the
 * file with the tokens of MCP servers, read only where there may be such servers.
 */
export async function readSecrets(
  { providers, secrets, search, mcp, lsp, formatter, plugins = [] }: SecretOptions,
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
    ? (await import("../mcp/client/oauth/token-store.ts")).openTokenStore(mcpTokens).secrets()
    : undefined
  const stored = { ...(await credentials.stored()), ...signedIn }
  const plugin = Object.fromEntries(plugins.map(({ name, options }) => [name, options]))
  const settings = { mcp, lsp, formatter, plugin }
  return knownSecrets({ environment, providers, secrets, search, settings, stored })
}

/** The options in which something secret may be written. */
type SecretOptions = Pick<
  TackleOptions,
  "providers" | "secrets" | "search" | "mcp" | "lsp" | "formatter" | "plugins"
>
