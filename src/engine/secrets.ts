import type { Credentials } from "../model/credentials.ts"
import type { ProviderConfig } from "../model/model.ts"
import { providerTable } from "../model/provider-table.ts"
import type { Secret } from "../tool/secrets.ts"
import { searchKeyVariables } from "../tools/web/choose-search.ts"
import type { TackleOptions } from "./options.ts"
import { writtenSecrets } from "./written-secrets.ts"

/**
 * Returns the keys and tokens to hide, from the environment, the options and stored files. `mcpTokens` is the path of
 * the file with the tokens of MCP servers. This file is read only if servers are configured.
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

/** Returns the passwords in the URL of a database, both as written and with escapes decoded. */
export function databaseSecrets(url: string): Secret[] {
  const [, inAuthority] = /^\w+:\/\/[^/@:]*:([^/?#]+)@/.exec(url) ?? []
  const [, inQuery] = /[?&]password=([^&#]+)/.exec(url) ?? []
  const written = [inAuthority, inQuery].filter((password) => password !== undefined)
  return written
    .flatMap((password) => [password, withoutEscapes(password)])
    .map((value) => ({ name: "database-password", value }))
}

function withoutEscapes(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A `%` in the text is not an escape.
    return text
  }
}

/** Returns the keys of the S3-compatible storage of file contents. */
export function storageSecrets(environment: Readonly<Record<string, string | undefined>>): Secret[] {
  return storageKeyVariables.map((name) => ({ name, value: environment[name] ?? "" }))
}

/** Names of the variables that contain the keys of S3-compatible storage. */
export const storageKeyVariables = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]

/** Options that may contain secrets. */
type SecretOptions = Pick<
  TackleOptions,
  "providers" | "secrets" | "search" | "mcp" | "lsp" | "formatter" | "plugins"
>

/** Sources of secrets. */
export interface SecretSources {
  environment: Readonly<Record<string, string | undefined>>
  providers?: Readonly<Record<string, ProviderConfig>> | undefined
  /** Names of additional environment variables. */
  secrets?: readonly string[] | undefined
  search?: { key?: string | undefined } | undefined
  /**
   * Other sections of the config by name, such as `mcp`. Secrets can be in keys, headers, variables and arguments at
   * any depth.
   */
  settings?: Readonly<Record<string, unknown>>
  /** Keys of the auth file, by provider. */
  stored?: Readonly<Record<string, string>>
}

/** Returns the names of variables that contain keys of known or configured providers, or of search services. */
export function keyVariables(providers: Readonly<Record<string, ProviderConfig>> = {}): string[] {
  const configured = Object.values(providers).flatMap(({ env }) => env ?? [])
  return [...providerTable.flatMap((row) => row.keyVariables), ...searchKeyVariables, ...configured]
}

/** Returns all values to hide: the values of the variables, and the keys in the config and in stored files. */
function knownSecrets({
  environment,
  providers = {},
  secrets,
  search,
  settings = {},
  stored = {},
}: SecretSources): Secret[] {
  const variables = [...keyVariables(providers), ...(secrets ?? [])]
  return [
    ...variables.map((name) => ({ name, value: environment[name] ?? "" })),
    ...Object.entries(providers).flatMap(([id, { options }]) => providerSecrets(id, options)),
    { name: "search.key", value: search?.key ?? "" },
    ...Object.entries(settings).flatMap(([name, part]) => writtenSecrets(name, part)),
    ...storedSecrets(stored),
  ]
}

function providerSecrets(id: string, options: ProviderConfig["options"]): Secret[] {
  const written = writtenSecrets(`provider.${id}.options`, options)
  // Users often configure the name of the server as the key if the server needs none. Such a name is not a secret.
  return written.filter(({ value }) => value !== id)
}

/** Returns the keys and tokens from stored files as secrets. */
export function storedSecrets(stored: Readonly<Record<string, string>>): Secret[] {
  return Object.entries(stored).map(([id, value]) => ({ name: `${id} key`, value }))
}
