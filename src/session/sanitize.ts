import { isRecord } from "../util/json.ts"
import type { Archive } from "./archive.ts"

/** Keys whose values say how something is built and not what it is about. */
const structural: ReadonlySet<string> = new Set([
  ...[
    "format",
    "id",
    "sessionID",
    "messageID",
    "parentID",
    "callID",
    "parentCallID",
    "type",
    "role",
    "status",
  ],
  ...["name", "agent", "providerID", "modelID", "finish", "reason", "tool", "mime", "priority"],
])

/** Keys below which everything was chosen by a model, a tool or a provider. */
const free: ReadonlySet<string> = new Set(["input", "metadata"])

/** A value that is a name. Anything longer or with other characters may be a text or a place. */
const plainName = /^\w[\w.:/@+-]{0,79}$/

/**
 * The archive without what was said, read, written or run, and without places and names of files: the shape of what
 * happened, with the lengths of the texts, for a report that anyone may read. It can be imported.
 */
export function sanitizeArchive(archive: Archive): Archive {
  return sanitize(archive) as Archive
}

/** {@link sanitizeArchive} for a part of an archive: a session, a message with its parts, a list of to-dos. */
export function sanitize(value: unknown, key = "", isFree = false): unknown {
  if (typeof value === "string") {
    return !isFree && structural.has(key) && plainName.test(value) ? value : `[${value.length} characters]`
  }
  if (Array.isArray(value)) return value.map((entry) => sanitize(entry, key, isFree))
  if (!isRecord(value)) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([name, inner]) => [name, sanitize(inner, name, isFree || free.has(name))]),
  )
}
