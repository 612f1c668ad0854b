import { isRecord } from "../util/json.ts"
import type { Archive } from "./archive.ts"

/** An id of ours or a provider's, or a word of a schema. */
const word = /^[\w-]{1,80}$/

/** By key, what a value looks like that says how something is built and not what it is about. */
const structural: ReadonlyMap<string, RegExp> = new Map([
  ...["id", "sessionID", "messageID", "parentID"].map((key) => [key, /^(?:ses|msg|prt)_\w{1,100}$/] as const),
  ...["callID", "parentCallID", "tool", "agent", "providerID"].map((key) => [key, word] as const),
  ...["type", "role", "status", "name", "finish", "reason", "priority", "fixed"].map(
    (key) => [key, word] as const,
  ),
  ["format", /^tackle\.session$/],
  ["modelID", /^\w[\w.:/-]{0,79}$/],
  ["mime", /^(?:application|audio|image|text|video)\/[\w.+-]{1,60}$/],
])

/** Keys below which everything was chosen by a model, a tool or a provider: names and numbers too. */
const free: ReadonlySet<string> = new Set(["input", "metadata"])

/** Lists of what was seen on a machine, which serve nobody on another. */
const left: ReadonlySet<string> = new Set(["seen"])

/**
 * The archive without what was said, read, written or run, and without places and names of files: the shape of what
 * happened, with the lengths of the texts, for a report that anyone may read. It can be imported.
 */
export function sanitizeArchive(archive: Archive): Archive {
  return sanitize(archive) as Archive
}

/** {@link sanitizeArchive} for a part of an archive: a session, a message with its parts, a list of to-dos. */
export function sanitize(value: unknown, key = ""): unknown {
  if (typeof value === "string") return structural.get(key)?.test(value) ? value : lengthOf(value)
  if (Array.isArray(value)) return value.map((entry) => sanitize(entry, key))
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([name]) => !left.has(name))
  return Object.fromEntries(
    // Counts of tokens are below a key of that name too.
    entries.map(([name, inner]) => [
      name,
      free.has(name) && isRecord(inner) ? hide(inner) : sanitize(inner, name),
    ]),
  )
}

/** The shape of a value, with nothing that was in it. */
function hide(value: unknown): unknown {
  if (typeof value === "string") return lengthOf(value)
  if (typeof value === "number") return 0
  if (Array.isArray(value)) return value.map(hide)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.values(value).map((inner, index) => [`field ${index + 1}`, hide(inner)]))
}

function lengthOf(text: string): string {
  return `[${text.length} characters]`
}
