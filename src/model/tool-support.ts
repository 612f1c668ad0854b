import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** Which models' servers refused tools. Names are `provider/model`. */
export interface ToolSupport {
  /** What the server said, where it refused. */
  refused(name: string): string | undefined
  /** Throws `TackleError` when it cannot be written. */
  remember(name: string, reason: string): void
  /** Of one model, or of all; returns those that were forgotten. Throws `TackleError` when it cannot be written. */
  forget(name?: string): string[]
}

type Refusals = Record<string, { reason: string; time: string }>

/**
 * The memory in `tool-support.json` of the data directory. A missing file is an empty one, and so is one that cannot be
 * understood.
 */
export function openToolSupport(dataDirectory: string): ToolSupport {
  const path = join(dataDirectory, "tool-support.json")
  let known: Refusals | undefined
  return {
    refused(name) {
      known ??= load(path)
      return Object.hasOwn(known, name) ? known[name]?.reason : undefined
    },
    remember(name, reason) {
      // Read again, so that what another process wrote meanwhile stays.
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

/** A memory that ends with the process. */
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

/** What is lost is learned again at the next refusal. */
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

/** Whole or not at all: written beside, then renamed. */
function save(path: string, refused: Refusals): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, `${JSON.stringify({ refused }, null, 2)}\n`, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the rights of its directory.`,
      {
        code: "tool-support.write",
        recoverable: false,
        cause: error,
      },
    )
  }
}
