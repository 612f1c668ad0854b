import { searchKeyVariables } from "../builtin/web/search-backend.ts"
import type { ProviderConfig } from "../model/model.ts"
import { providerTable } from "../model/provider-table.ts"
import type { Secret } from "../tool/secrets.ts"

/** Where secrets are named. */
export interface SecretSources {
  environment: Readonly<Record<string, string | undefined>>
  providers?: Readonly<Record<string, ProviderConfig>> | undefined
  /** Names of further variables. */
  secrets?: readonly string[] | undefined
  search?: { key?: string | undefined } | undefined
  /** Keys of the auth file by provider. */
  stored?: Readonly<Record<string, string>>
}

/** The variables that hold keys of the known and the configured providers, and of searches. */
export function keyVariables(providers: Readonly<Record<string, ProviderConfig>> = {}): string[] {
  const configured = Object.values(providers).flatMap(({ env }) => env ?? [])
  return [...providerTable.flatMap((row) => row.keyVariables), ...searchKeyVariables, ...configured]
}

/** All values that must not be seen: keys wherever they stand, headers that look like one, and the variables that are named. */
export function knownSecrets({
  environment,
  providers = {},
  secrets,
  search,
  stored = {},
}: SecretSources): Secret[] {
  const variables = [...keyVariables(providers), ...(secrets ?? [])]
  const written = Object.entries(providers).flatMap(([id, { options }]) => [
    // Servers that want no key are often given their own name as one.
    { name: `provider.${id}.options.apiKey`, value: options?.apiKey === id ? "" : (options?.apiKey ?? "") },
    ...Object.entries(options?.headers ?? {})
      .filter(([header]) => secretHeader.test(header))
      .map(([header, value]) => ({ name: `provider.${id}.options.headers.${header}`, value: bare(value) })),
  ])
  return [
    ...variables.map((name) => ({ name, value: environment[name] ?? "" })),
    ...written,
    { name: "search.key", value: search?.key ?? "" },
    ...storedSecrets(stored),
  ]
}

/** Keys and tokens of our own files, which are given by what they are. */
export function storedSecrets(stored: Readonly<Record<string, string>>): Secret[] {
  return Object.entries(stored).map(([id, value]) => ({ name: `${id} key`, value }))
}

const secretHeader = /key|token|secret|password|authorization|cookie/i

/** Without the scheme: it is the token alone that is a secret, and it may stand elsewhere without it. */
function bare(header: string): string {
  return header.replace(/^(?:bearer|basic|token)\s+/i, "")
}
