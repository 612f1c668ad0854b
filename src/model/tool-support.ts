import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** Records which models reject requests with tools. Names have the form `provider/model`. */
export interface ToolSupport {
  /** Returns the server's message if the model rejected tools, or undefined if no rejection is recorded. */
  refused(name: string): string | undefined
  /** Records a rejection. Throws `TackleError` if writing fails. */
  remember(name: string, reason: string): void
  /**
   * Forgets one model, or all models if `name` is undefined. Returns the forgotten names. Throws `TackleError` if
   * writing fails.
   */
  forget(name?: string): string[]
}

type Refusals = Record<string, { reason: string; time: string }>

/** Opens `tool-support.json` in the data directory. A missing or invalid file counts as empty. */
export function openToolSupport(dataDirectory: string): ToolSupport {
  const path = join(dataDirectory, "tool-support.json")
  let known: Refusals | undefined
  return {
    refused(name) {
      known ??= load(path)
      return Object.hasOwn(known, name) ? known[name]?.reason : undefined
    },
    remember(name, reason) {
      // Read the file again to keep changes by other processes.
      known = { ...load(path), [name]: { reason: reason.slice(0, 300), time: new Date().toISOString() } }
      save(path, known)
    },
    forget(name) {
      const before = load(path)
      const gone = Object.keys(before).filter((candidate) => name === undefined || candidate === name)
      known = Object.fromEntries(Object.entries(before).filter(([candidate]) => !gone.includes(candidate)))
      if (gone.length > 0) save(path, known)
      return gone
    },
  }
}

/** Creates an in-memory store. */
export function createToolSupport(): ToolSupport {
  const known = new Map<string, string>()
  return {
    refused: (name) => known.get(name),
    remember: (name, reason) => void known.set(name, reason),
    forget(name) {
      const gone = [...known.keys()].filter((candidate) => name === undefined || candidate === name)
      for (const candidate of gone) known.delete(candidate)
      return gone
    },
  }
}

/** Reads the file and drops invalid entries. The next rejection records an entry again. */
function load(path: string): Refusals {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return {}
    throw error
  }
  const parsed = parseJson(text)
  if (!parsed.ok || !isRecord(parsed.value) || !isRecord(parsed.value.refused)) return {}
  const entries = Object.entries(parsed.value.refused).flatMap(([name, entry]) =>
    isRecord(entry) && typeof entry.reason === "string"
      ? [[name, { reason: entry.reason, time: String(entry.time) }] as const]
      : [],
  )
  return Object.fromEntries(entries)
}

/** Writes the file atomically. */
function save(path: string, refused: Refusals): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, `${JSON.stringify({ refused }, null, 2)}\n`, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new TackleError(
      `Cannot write ${path} (${errorMessage(error)}). Check the permissions of its directory.`,
      {
        code: "tool-support.write",
        recoverable: false,
        cause: error,
      },
    )
  }
}
