import * as z from "zod"
import { Message } from "../schema/message.ts"
import { Part } from "../schema/part.ts"
import { Session } from "../schema/session.ts"
import { Todo } from "../schema/todo.ts"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"

/** A session with its messages and its to-do list. */
const SessionRecord = z.strictObject({
  session: Session,
  messages: z.array(z.strictObject({ message: Message, parts: z.array(Part) })),
  todos: z.array(Todo),
})
export type SessionRecord = z.infer<typeof SessionRecord>

/**
 * A session and the sessions of its subagents, with their messages and to-do lists. Does not contain grants, inputs or
 * the stored contents of changed files.
 */
export const Archive = z.strictObject({
  format: z.literal("tackle.session"),
  version: z.literal(1),
  ...SessionRecord.shape,
  /** Sessions of subagents at any depth. Parents come before their children. */
  children: z.array(SessionRecord),
})
export type Archive = z.infer<typeof Archive>

/**
 * Thrown when an archive is invalid or contains a session that already exists, or when the message to fork from is
 * unknown. Nothing has been stored.
 */
export class ArchiveError extends UsageError {
  constructor(message: string, code = "session.archive") {
    super(message, undefined, code)
  }
}

/** Thrown when an archive contains a session that already exists. */
export class SessionExistsError extends ArchiveError {
  readonly id: string
  constructor(id: string) {
    super(
      `Session ${id} already exists. Use --copy to import a copy, or delete the existing session first.`,
      "session.exists",
    )
    this.id = id
  }
}

/** Fields at the start of every archive. */
export const archiveHead = { format: "tackle.session", version: 1 } as const

/**
 * Returns the value as an archive. If it is not a valid archive, throws an {@link ArchiveError} that describes the
 * first problem.
 */
export function checkArchive(value: unknown): Archive {
  const result = Archive.safeParse(value)
  if (!result.success) {
    if (!isRecord(value) || value.format !== archiveHead.format)
      throw new ArchiveError(describeForeign(value))
    const [issue] = result.error.issues
    throw misfit(issue?.path ?? [], issue?.message ?? "it does not match the schema")
  }
  const archive = result.data
  const sessions = new Set<string>()
  for (const [index, record] of [archive, ...archive.children].entries()) {
    const place = index === 0 ? [] : ["children", index - 1]
    const { id, parentID } = record.session
    checkID(id, "ses", [...place, "session", "id"])
    if (sessions.has(id))
      throw misfit([...place, "session", "id"], `The archive contains two sessions with the id ${id}.`)
    if (index > 0 && !sessions.has(parentID ?? ""))
      throw misfit([...place, "session", "parentID"], `Session ${id} does not come after its parent.`)
    sessions.add(id)
    checkRecord(record, place)
  }
  return archive
}

/** Returns the error message for a value that is not an archive, such as an OpenCode export. */
function describeForeign(value: unknown): string {
  const wanted = "This is not a session archive from `tackle session export`"
  if (!isRecord(value))
    return `${wanted}: expected an object, got ${value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`}.`
  if (isRecord(value.info) && Array.isArray(value.messages))
    return `${wanted}. It looks like an OpenCode export, which cannot be imported.`
  const keys = Object.keys(value)
    .slice(0, 5)
    .map((key) => JSON.stringify(key.slice(0, 40)))
  const found = keys.length === 0 ? "an empty object" : `an object with ${keys.join(", ")}`
  return `${wanted}: expected "format": "${archiveHead.format}", got ${found}.`
}

function misfit(place: readonly PropertyKey[], why: string): ArchiveError {
  const at = place.length > 0 ? ` at ${place.join(".")}` : ""
  return new ArchiveError(`Invalid session archive${at}: ${why}`)
}

/**
 * Rejects ids with unexpected characters. Ids become file and directory names, so unexpected characters could make an
 * id refer to a different file.
 */
function checkID(id: string, prefix: "ses" | "msg" | "prt", place: readonly PropertyKey[]): void {
  if (!new RegExp(`^${prefix}_\\w{1,100}$`).test(id))
    throw misfit(place, `Expected an id: ${prefix}_, then letters, digits or "_".`)
}

function checkRecord({ session, messages }: SessionRecord, root: readonly PropertyKey[]): void {
  const seen = new Set<string>()
  let last = ""
  for (const [index, { message, parts }] of messages.entries()) {
    const at = (key: string) => [...root, "messages", index, "message", key]
    const { id } = message
    checkID(id, "msg", at("id"))
    if (message.sessionID !== session.id)
      throw misfit(at("sessionID"), `Expected the id of session ${session.id}.`)
    if (id <= last)
      throw misfit(at("id"), `The id of message ${id} does not sort after the id of the previous message.`)
    if (message.role === "assistant" && !seen.has(message.parentID))
      throw misfit(at("parentID"), `Message ${id} does not come after the message that it answers.`)
    last = id
    seen.add(id)
    checkParts(parts, message, [...root, "messages", index, "parts"])
  }
}

function checkParts(parts: readonly Part[], message: Message, root: readonly PropertyKey[]): void {
  let last = ""
  for (const [index, { id, sessionID, messageID }] of parts.entries()) {
    const at = (key: string) => [...root, index, key]
    checkID(id, "prt", at("id"))
    if (sessionID !== message.sessionID)
      throw misfit(at("sessionID"), `Expected the id of session ${message.sessionID}.`)
    if (messageID !== message.id) throw misfit(at("messageID"), `Expected the id of message ${message.id}.`)
    if (id <= last)
      throw misfit(at("id"), `The id of part ${id} does not sort after the id of the previous part.`)
    last = id
  }
}

/** Matches an id, a name, or a keyword from the schema, such as `completed`. */
const word = /^[\w-]{1,80}$/

/** Patterns keyed by property name. A value that matches its pattern is structure, not content. */
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

/** Keys whose values come from a model, a tool or a provider, including the field names and numbers in these values. */
const free: ReadonlySet<string> = new Set(["input", "metadata"])

/** Keys whose values identify local files, machines or tenants. These values are removed. */
const left: ReadonlySet<string> = new Set(["seen", "workspace", "tenant"])

/**
 * Returns the archive without texts, file names or paths, for use in a public report. The structure, ids, times, token
 * counts, lengths of texts, and names of agents, models and tools remain. The result can be imported.
 */
export function sanitizeArchive(archive: Archive): Archive {
  return sanitize(archive) as Archive
}

/**
 * Like {@link sanitizeArchive}, but for one element of an archive: a session, a message with its parts, or a to-do
 * list.
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
