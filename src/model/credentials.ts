import { readFile, stat } from "node:fs/promises"
import * as z from "zod"
import { updatePrivateFile } from "../store/private-file.ts"
import { systemCode, UsageError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** Reads and writes the API keys and tokens of providers. */
export interface Credentials {
  /**
   * Returns the value of the first environment variable in `variables` that is set, or else the key in the auth file,
   * or undefined if neither exists. Throws `UsageError` if the auth file is malformed or readable by other users.
   */
  key(providerID: string, variables: readonly string[]): Promise<string | undefined>
  /** Returns the provider's entry in the auth file. Throws the same errors as {@link key}. */
  entry(providerID: string): Promise<Readonly<Record<string, unknown>> | undefined>
  /**
   * Writes the provider's entry, or removes it if `entry` is undefined. Throws the same errors as {@link key}, and
   * `TackleError` if writing fails.
   */
  save(providerID: string, entry: Readonly<Record<string, unknown>> | undefined): Promise<void>
  /** Returns the ids of the providers in the auth file. Throws the same errors as {@link key}. */
  providers(): Promise<string[]>
  /**
   * Returns the keys and tokens in the auth file, keyed by name, so that output can mask them. Returns an empty record
   * if the file is missing or cannot be used; {@link key} reports why it cannot be used.
   */
  stored(): Promise<Record<string, string>>
}

const AuthFile = z.lazy(() =>
  z.record(z.string(), z.looseObject({ type: z.string(), key: z.string().optional() })),
)

/**
 * Opens the credentials. `authFile` is the path of `<data>/auth.json`, which may be missing. Example content:
 *
 * `{ "openai": { "type": "api", "key": "…" } }`
 */
export function createCredentials(options: {
  environment: Readonly<Record<string, string | undefined>>
  authFile: string
  /** Receives the keys and tokens, keyed by name, whenever they are read or written, since they can change. */
  onSecrets?: (secrets: Record<string, string>) => void
}): Credentials {
  const { environment, authFile, onSecrets } = options

  async function read(): Promise<z.infer<typeof AuthFile>> {
    const entries = (await readAuthFile(authFile)) ?? {}
    onSecrets?.(secretsIn(entries))
    return entries
  }

  return {
    async key(providerID, variables) {
      for (const name of variables) {
        const value = environment[name]?.trim()
        if (value) return value
      }
      const entry = (await read())[providerID]
      return entry?.type === "api" ? entry.key : undefined
    },
    async entry(providerID) {
      const entries = await read()
      return Object.hasOwn(entries, providerID) ? entries[providerID] : undefined
    },
    async save(providerID, entry) {
      // Fail for a malformed file instead of overwriting it, so that the user can repair it.
      await readAuthFile(authFile)
      if (entry) onSecrets?.(secretsIn({ [providerID]: entry }))
      updatePrivateFile(authFile, "auth.write", (stored) => {
        const { [providerID]: _, ...others } = isRecord(stored) ? stored : {}
        return entry === undefined ? others : { ...others, [providerID]: entry }
      })
    },
    providers: async () => Object.keys(await read()),
    async stored() {
      try {
        return secretsIn(await read())
      } catch {
        // The keys in an invalid file are not used. `key` reports the error.
        return {}
      }
    },
  }
}

function secretsIn(
  entries: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).flatMap(([id, entry]) => secretsOf(id, entry)))
}

function secretsOf(id: string, { key, access, refresh }: Readonly<Record<string, unknown>>) {
  const secrets: readonly (readonly [name: string, value: unknown])[] = [
    [id, key],
    [`${id} access`, access],
    [`${id} refresh`, refresh],
  ]
  return secrets.filter(
    (entry): entry is readonly [string, string] => typeof entry[1] === "string" && entry[1] !== "",
  )
}

async function readAuthFile(path: string): Promise<z.infer<typeof AuthFile> | undefined> {
  let text: string
  try {
    const { mode } = await stat(path)
    if ((mode & 0o077) !== 0) {
      throw new UsageError(`Other users can read the keys in ${path}. Run: chmod 600 ${path}`)
    }
    text = await readFile(path, "utf8")
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined
    throw error
  }
  const json = parseJson(text)
  const parsed = json.ok ? AuthFile.safeParse(json.value) : undefined
  if (parsed?.success) return parsed.data
  throw new UsageError(
    `${path} is not a valid auth file: expected {"<provider>": {"type": "api", "key": "…"}}. Repair or delete the file.`,
  )
}
