import { isRecord } from "../util/json.ts"
import type { Archive } from "./archive.ts"

/** Matches an id or a keyword of a schema. */
const word = /^[\w-]{1,80}$/

/** Patterns by key. A value that matches the pattern of its key is structure, not content. */
const structural: ReadonlyMap<string, RegExp> = new Map([
  ...["id", "sessionID", "messageID", "parentID", "forkedFrom"].map(
    (key) => [key, /^(?:ses|msg|prt)_\w{1,100}$/] as const,
  ),
  ...["callID", "parentCallID", "tool", "agent", "providerID"].map((key) => [key, word] as const),
  ...["type", "role", "status", "name", "finish", "reason", "priority", "fixed"].map(
    (key) => [key, word] as const,
  ),
  ["format", /^tackle\.session$/],
  ["modelID", /^\w[\w.:/-]{0,79}$/],
  ["mime", /^(?:application|audio|image|text|video)\/[\w.+-]{1,60}$/],
])

/** Keys whose values, including names and numbers, come from a model, a tool or a provider. */
const free: ReadonlySet<string> = new Set(["input", "metadata"])

/** Keys of values that name local files, machines and tenants. These values are removed. */
const left: ReadonlySet<string> = new Set(["seen", "workspace", "tenant"])

/**
 * Returns the archive without texts, file names and paths, for use in a public report. Only the structure and the
 * lengths of texts remain. The result can be imported.
 */
export function sanitizeArchive(archive: Archive): Archive {
  return sanitize(archive) as Archive
}

/**
 * Like {@link sanitizeArchive}, but for one part of an archive: a session, a message with its parts, or a to-do list.
 */
export function sanitize(value: unknown, key = ""): unknown {
  if (typeof value === "string") return structural.get(key)?.test(value) ? value : lengthOf(value)
  if (Array.isArray(value)) return value.map((entry) => sanitize(entry, key))
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([name]) => !left.has(name))
  return Object.fromEntries(
    // Hides only objects, because the key `input` also occurs in token counts.
    entries.map(([name, inner]) => [
      name,
      free.has(name) && isRecord(inner) ? hide(inner) : sanitize(inner, name),
    ]),
  )
}

/** Returns the shape of a value without its content. */
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
