import { readFile, stat } from "node:fs/promises"
import * as z from "zod"
import { updatePrivateFile } from "../store/private-file.ts"
import { systemCode, UsageError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** Where the providers' keys come from. */
export interface Credentials {
  /**
   * The first of the environment's `variables` that is set, else the key of the auth file. Throws `UsageError` for an
   * auth file that is malformed or readable by others.
   */
  key(providerID: string, variables: readonly string[]): Promise<string | undefined>
  /** What the auth file has of the provider. Throws as {@link key} does. */
  entry(providerID: string): Promise<Readonly<Record<string, unknown>> | undefined>
  /** Writes it; undefined removes it. Throws as {@link key} does, and `TackleError` where it cannot be written. */
  save(providerID: string, entry: Readonly<Record<string, unknown>> | undefined): Promise<void>
  /** Ids of the providers in the auth file. Throws as {@link key} does. */
  providers(): Promise<string[]>
  /**
   * The keys and tokens of the auth file by what they are, to be hidden. Empty where it cannot be used: {@link key}
   * says so.
   */
  stored(): Promise<Record<string, string>>
}

const AuthFile = z.lazy(() =>
  z.record(z.string(), z.looseObject({ type: z.string(), key: z.string().optional() })),
)

/** `authFile` is `<data>/auth.json`: `{ "openai": { "type": "api", "key": "…" } }`. It may be missing. */
export function createCredentials(options: {
  environment: Readonly<Record<string, string | undefined>>
  authFile: string
  /** Gets the keys and tokens whenever they are read or written, by what they are: they may be other ones since. */
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
      // One that cannot be understood is mended by hand and not written over.
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
        // Whoever needs a key of it is told what is wrong with it; until then no key of it is in use.
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
      throw new UsageError(`Other users may read the keys in ${path}. Run: chmod 600 ${path}`)
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
    `${path} is no auth file: expected {"<provider>": {"type": "api", "key": "…"}}. Mend it or delete it.`,
  )
}
