import type { Credentials } from "../model/credentials.ts"
import type { ProviderConfig } from "../model/model.ts"
import { providerTable } from "../model/provider-table.ts"
import type { Secret } from "../tool/secrets.ts"
import { searchKeyVariables } from "../tools/web/choose-search.ts"
import { isRecord } from "../util/json.ts"
import type { TackleOptions } from "./options.ts"

/**
 * Returns the keys and tokens to hide, from the environment, the options and stored files. `mcpTokens` is the path of
 * the file with the tokens for MCP servers. This file is read only if servers are configured.
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

/** Returns the passwords in a database URL, both as written and with escapes decoded. */
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

/** Returns the keys for the S3-compatible storage of file contents. */
export function storageSecrets(environment: Readonly<Record<string, string | undefined>>): Secret[] {
  return storageKeyVariables.map((name) => ({ name, value: environment[name] ?? "" }))
}

/** Names of the variables that contain the keys for S3-compatible storage. */
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
  /** Names of additional environment variables whose values are secrets. */
  secrets?: readonly string[] | undefined
  search?: { key?: string | undefined } | undefined
  /**
   * Other config sections, keyed by name, such as `mcp`. Secrets can be in keys, headers, variables and arguments at
   * any depth.
   */
  settings?: Readonly<Record<string, unknown>>
  /** Keys and tokens from stored files, keyed by provider or MCP server. */
  stored?: Readonly<Record<string, string>>
}

/** Returns the names of variables that contain keys for known or configured providers, or for search services. */
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
  // Users often set the key to the provider's id if the provider's server needs no key. Such an id is not a secret.
  return written.filter(({ value }) => value !== id)
}

/** Returns the keys and tokens from stored files as secrets. */
export function storedSecrets(stored: Readonly<Record<string, string>>): Secret[] {
  return Object.entries(stored).map(([id, value]) => ({ name: `${id} key`, value }))
}

/**
 * Returns the secrets in a config section, at any depth. The name of a secret is its location. A secret is a value
 * whose key looks like a credential, a token with a scheme (`Bearer …`), the value of an argument such as
 * `--api-key=…`, or a credential in an address. Other values are not secrets, because hiding values such as
 * `production` or `application/json` would garble every result.
 */
export function writtenSecrets(name: string, value: unknown): Secret[] {
  if (typeof value === "string") return secretsInText(name, value)
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => {
      const before: unknown = value[index - 1]
      const follows = typeof before === "string" && /^-[^\s=]+$/.test(before) && namesCredential(before)
      if (!follows || typeof item !== "string") return writtenSecrets(name, item)
      return [{ name: `${name} ${before}`, value: item }]
    })
  }
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = `${name}.${key}`
    const isCredential = typeof inner === "string" && namesCredential(key)
    return isCredential ? [{ name: path, value: withoutScheme(inner) }] : writtenSecrets(path, inner)
  })
}

/**
 * Returns true if the name of a key, header or variable looks like a credential, but not like the location of a
 * credential.
 */
export function namesCredential(name: string): boolean {
  return credential.test(name) && !place.test(name)
}

const place = /(?:file|path|dir|directory|env|url|uri)$/i

const credential =
  /key|token|secret|passw|passphrase|pwd|credential|authorization|cookie|(?:^|[-_.])(?:auth|pass|pat|jwt|signature)$/i

const credentialArgument = /^-{0,2}([\w-]+)\s*[=:]\s*(\S.*)$/s
const scheme = /^(?:bearer|basic|token)\s+/i

/** Returns the secrets in a value whose key does not look like a credential. */
function secretsInText(name: string, text: string): Secret[] {
  if (scheme.test(text)) return [{ name, value: withoutScheme(text) }]
  const [, argument = "", value = ""] = credentialArgument.exec(text) ?? []
  if (namesCredential(argument)) return [{ name: `${name} ${argument}`, value: withoutScheme(value) }]
  return secretsOfAddress(name, text)
}

/** Removes the scheme, because only the token is secret, and the token may occur elsewhere without the scheme. */
function withoutScheme(text: string): string {
  return text.replace(scheme, "")
}

/** Returns the secrets in an address, each in encoded and decoded form. */
function secretsOfAddress(name: string, text: string): Secret[] {
  if (!text.includes("://") || !URL.canParse(text)) return []
  const { password, searchParams } = new URL(text)
  const passwords = password === "" ? [] : [password, decoded(password)]
  const parameters = [...searchParams].filter(([key]) => namesCredential(key))
  return [
    ...passwords.map((value) => ({ name: `${name} password`, value })),
    ...parameters.flatMap(([key, value]) =>
      [value, encodeURIComponent(value)].map((spelling) => ({ name: `${name} ${key}`, value: spelling })),
    ),
  ]
}

/** Decodes percent-encoding. Returns invalid text unchanged, because passwords often contain a plain `%`. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
