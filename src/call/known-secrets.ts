import type { ProviderConfig } from "../model/model.ts"
import { providerTable } from "../model/provider-table.ts"
import type { Secret } from "../tool/secrets.ts"
import { searchKeyVariables } from "../tools/web/search-backend.ts"
import { writtenSecrets } from "./written-secrets.ts"

/** Where secrets are named. */
export interface SecretSources {
  environment: Readonly<Record<string, string | undefined>>
  providers?: Readonly<Record<string, ProviderConfig>> | undefined
  /** Names of further variables. */
  secrets?: readonly string[] | undefined
  search?: { key?: string | undefined } | undefined
  /** Further parts of the config by their name, such as `mcp`: any key, header, variable or argument in them. */
  settings?: Readonly<Record<string, unknown>>
  /** Keys of the auth file by provider. */
  stored?: Readonly<Record<string, string>>
}

/** The variables that hold keys of the known and the configured providers, and of searches. */
export function keyVariables(providers: Readonly<Record<string, ProviderConfig>> = {}): string[] {
  const configured = Object.values(providers).flatMap(({ env }) => env ?? [])
  return [...providerTable.flatMap((row) => row.keyVariables), ...searchKeyVariables, ...configured]
}

/** All values that must not be seen: the variables that are named, and keys wherever they are written or stored. */
export function knownSecrets({
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
  // Servers that want no key are often given their own name as one.
  return written.filter(({ value }) => value !== id)
}

/** Keys and tokens of our own files, which are given by what they are. */
export function storedSecrets(stored: Readonly<Record<string, string>>): Secret[] {
  return Object.entries(stored).map(([id, value]) => ({ name: `${id} key`, value }))
}
