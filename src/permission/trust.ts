import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { type TrustItem, trustKinds } from "./trust-items.ts"

/** What the person trusted, per real path of a work tree. Nested directories and other work trees inherit nothing. */
export interface Trust {
  /** Set where the file could not be understood: nothing is trusted then, and this says why. For people. */
  readonly problem: string | undefined
  /** `changed`: the items that are new, or another since they were trusted. `trusted`: there are none of these. */
  isTrusted(directoryRealPath: string, items: readonly TrustItem[]): TrustVerdict
  /** `changed`: trusted once, with another content. */
  state(directoryRealPath: string, item: TrustItem): "trusted" | "changed" | "new"
  /**
   * From now on these items of the directory are trusted, beside what is: a person sees only those on the way to where
   * they are, and those of a neighbouring folder keep their trust. A file that could not be understood is written anew.
   * Throws `TackleError` when it cannot be written.
   */
  trust(directoryRealPath: string, items: readonly TrustItem[]): void
  /** Takes back the trust in these items of the directory; without items, all of it. Throws like {@link trust}. */
  revoke(directoryRealPath: string, items?: readonly ItemName[]): void
  /** What was trusted in the directory, as it is or as it was, sorted by path. */
  known(directoryRealPath: string): ItemName[]
}

type ItemName = Pick<TrustItem, "kind" | "path">

/** See {@link Trust.isTrusted}. An item that is gone since it was trusted changes nothing. */
export interface TrustVerdict {
  trusted: boolean
  changed: TrustItem[]
}

/** By directory, then by kind and path: the hash. */
type Directories = Map<string, Map<string, string>>

/** Opens `<data>/trust.json`. A missing file means that nothing was trusted yet. Never throws. */
export function openTrust(path: string): Trust {
  let { directories, problem } = load(path)

  function state(directory: string, item: TrustItem): "trusted" | "changed" | "new" {
    const known = directories.get(directory)?.get(itemKey(item))
    if (known === undefined) return "new"
    return item.hash !== "" && known === item.hash ? "trusted" : "changed"
  }

  function change(edit: (current: Directories) => void): void {
    // Read again, so that what another process wrote meanwhile stays.
    const current = load(path).directories
    edit(current)
    save(path, current)
    directories = current
    problem = undefined
  }

  return {
    get problem() {
      return problem
    },
    state,
    isTrusted(directory, items) {
      const changed = items.filter((item) => state(directory, item) !== "trusted")
      return { trusted: changed.length === 0, changed }
    },
    trust(directory, items) {
      change((current) => {
        const before = current.get(directory) ?? []
        current.set(
          directory,
          new Map([...before, ...items.map((item) => [itemKey(item), item.hash] as const)]),
        )
      })
    },
    revoke(directory, items) {
      change((current) => {
        for (const item of items ?? []) current.get(directory)?.delete(itemKey(item))
        if (items === undefined || current.get(directory)?.size === 0) current.delete(directory)
      })
    },
    known(directory) {
      const names = [...(directories.get(directory)?.keys() ?? [])].flatMap((key) => nameOf(key) ?? [])
      return names.sort((a, b) => (a.path < b.path ? -1 : 1))
    },
  }
}

function itemKey({ kind, path }: ItemName): string {
  return `${kind}:${path}`
}

/** Undefined for what a later version may have written. */
function nameOf(key: string): ItemName | undefined {
  const [, written, path] = /^(\w+):(.+)$/s.exec(key) ?? []
  const kind = trustKinds.find((known) => known === written)
  return kind === undefined || path === undefined ? undefined : { kind, path }
}

function load(path: string): { directories: Directories; problem?: string } {
  const directories: Directories = new Map()
  const failed = (reason: string) => ({
    directories: new Map(),
    problem: `${path} cannot be used (${reason}): nothing is trusted. Run "tackle trust" to write it anew.`,
  })
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    const missing = ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")
    return missing ? { directories } : failed(errorMessage(error))
  }
  const parsed = parseJson(text)
  if (!parsed.ok) return failed("it is no JSON")
  const listed = isRecord(parsed.value) && parsed.value.version === 1 ? parsed.value.directories : undefined
  if (!isRecord(listed)) return failed("it is not of version 1")
  for (const [directory, items] of Object.entries(listed)) {
    if (!isRecord(items)) return failed("an entry is no list of hashes")
    const hashes = Object.entries(items).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    )
    directories.set(directory, new Map(hashes))
  }
  return { directories }
}

/** Whole or not at all: written beside, then renamed. Readable by its owner alone. */
function save(path: string, directories: Directories): void {
  const listed = Object.fromEntries(
    [...directories].map(([name, items]) => [name, Object.fromEntries(items)]),
  )
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const text = `${JSON.stringify({ version: 1, directories: listed }, null, 2)}\n`
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the rights of its directory.`,
      {
        code: "trust.write",
        recoverable: false,
        cause: error,
      },
    )
  }
}
