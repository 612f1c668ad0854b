import * as z from "zod"
import { Message, type MessageWithParts } from "../schema/message.ts"
import { Part } from "../schema/part.ts"
import { Session } from "../schema/session.ts"
import { Todo } from "../schema/todo.ts"
import type { Change, Store } from "../store/store.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import { descendants } from "./descendants.ts"

const SessionRecord = z.strictObject({
  session: Session,
  messages: z.array(z.strictObject({ message: Message, parts: z.array(Part) })),
  todos: z.array(Todo),
})
type SessionRecord = z.infer<typeof SessionRecord>

/** All that is stored of a session and of those that its subagents worked in. Grants stay where they were given. */
export const Archive = z.strictObject({
  format: z.literal("tackle.session"),
  version: z.literal(1),
  ...SessionRecord.shape,
  /** The subagents' sessions at any depth, a parent before its children. */
  children: z.array(SessionRecord),
})
export type Archive = z.infer<typeof Archive>

/** What was given is no archive, does not fit together, or is there already. Nothing was stored. */
export class ArchiveError extends UsageError {
  constructor(message: string) {
    super(message, undefined, "session.archive")
  }
}

/** What every archive begins with. */
export const archiveHead = { format: "tackle.session", version: 1 } as const

/** A session with everything in it, or undefined where there is none. */
export async function exportSession(store: Store, id: string): Promise<Archive | undefined> {
  const session = await store.session(id)
  if (!session) return undefined
  const children: SessionRecord[] = []
  for (const child of await descendants(store, id)) children.push(await recordOf(store, child))
  return { ...archiveHead, ...(await recordOf(store, session)), children }
}

/**
 * Stores an archive as a session of the given place, all of it or nothing. With `copy` everything gets ids of its own,
 * also where a text names one; else they stay as they are and must be free. Unless it is our `own`, nothing that it says of
 * files can be undone: whoever made it would decide what is written where. Throws {@link ArchiveError}.
 */
export async function importSession(
  store: Store,
  value: unknown,
  place: { directory: string; worktree: string; copy?: boolean; own?: boolean },
): Promise<Session> {
  const given = checkArchive(value)
  const archive = place.copy ? withNewIds(given) : given
  const { directory, worktree, own = false } = place
  const placed = (record: SessionRecord): SessionRecord => {
    const { session, ...rest } = own ? record : withoutChanges(record)
    return { ...rest, session: { ...session, directory, worktree } }
  }
  const main = placed(archive)
  // What bound it as a subagent's is not here.
  delete main.session.parentID
  const records = [main, ...archive.children.map(placed)]
  for (const { session } of records) {
    if (await store.session(session.id)) {
      throw new ArchiveError(
        `There is a session ${session.id} already. Import it as a copy (--copy), or delete that one first.`,
      )
    }
  }
  await store.commit(records.flatMap(changesOf))
  return main.session
}

/**
 * A new session with the history of another, up to and with the message `at` where one is named and what follows it of
 * the same turn's answer. The other stays as it is. Throws {@link ArchiveError} for a message that is not there.
 */
export async function forkSession(store: Store, id: string, at?: string): Promise<Session | undefined> {
  const archive = await exportSession(store, id)
  if (!archive) return undefined
  // Whoever forks a replay goes on with it.
  const {
    session: { replayed: _, ...session },
    messages,
  } = archive
  const now = Date.now()
  const own = {
    ...session,
    title: `${session.title} (fork)`.trimStart(),
    time: { created: now, updated: now },
  }
  const kept = at === undefined ? messages : upTo(messages, at, id)
  const { directory, worktree } = session
  return importSession(
    store,
    { ...archive, session: own, messages: kept, children: [] },
    { directory, worktree, copy: true, own: true },
  )
}

function withoutChanges({ session, messages, todos }: SessionRecord): SessionRecord {
  const rest = { ...session }
  delete rest.undone
  const kept = messages.map(({ message, parts }) => ({
    message,
    parts: parts.filter(({ type }) => type !== "patch"),
  }))
  return { session: rest, messages: kept, todos }
}

/** The archive that a value is. Throws {@link ArchiveError} that names the first place that does not fit. */
export function checkArchive(value: unknown): Archive {
  const result = Archive.safeParse(value)
  if (!result.success) {
    if (!isRecord(value) || value.format !== archiveHead.format)
      throw new ArchiveError(describeForeign(value))
    const [issue] = result.error.issues
    throw misfit(issue?.path ?? [], issue?.message ?? "it does not fit")
  }
  const archive = result.data
  const sessions = new Set<string>()
  for (const [index, record] of [archive, ...archive.children].entries()) {
    const place = index === 0 ? [] : ["children", index - 1]
    const { id, parentID } = record.session
    checkID(id, "ses", [...place, "session", "id"])
    if (sessions.has(id))
      throw misfit([...place, "session", "id"], `Two sessions of the archive have the id ${id}.`)
    if (index > 0 && !sessions.has(parentID ?? ""))
      throw misfit([...place, "session", "parentID"], `The session ${id} does not come after its parent.`)
    sessions.add(id)
    checkRecord(record, place)
  }
  return archive
}

/** For what somebody may take for a session. */
function describeForeign(value: unknown): string {
  const wanted = "This is no session of `tackle session export`"
  if (!isRecord(value))
    return `${wanted}: that is an object, and this is ${Array.isArray(value) ? "a list" : "none"}.`
  if (isRecord(value.info) && Array.isArray(value.messages))
    return `${wanted}; it looks like one that OpenCode exported, and those cannot be imported.`
  const keys = Object.keys(value)
    .slice(0, 5)
    .map((key) => JSON.stringify(key.slice(0, 40)))
  const found = keys.length === 0 ? "is empty" : `begins with ${keys.join(", ")}`
  return `${wanted}: that has "format": "${archiveHead.format}", and this ${found}.`
}

function misfit(place: readonly PropertyKey[], why: string): ArchiveError {
  const at = place.length > 0 ? ` at ${place.join(".")}` : ""
  return new ArchiveError(`This is no session of \`tackle session export\`${at}: ${why}`)
}

/** Files and directories are named after ids: one with other characters would name those of somebody else. */
function checkID(id: string, prefix: "ses" | "msg" | "prt", place: readonly PropertyKey[]): void {
  if (!new RegExp(`^${prefix}_\\w{1,100}$`).test(id))
    throw misfit(place, `An id is ${prefix}_ and letters or digits.`)
}

function checkRecord({ session, messages }: SessionRecord, root: readonly PropertyKey[]): void {
  const seen = new Set<string>()
  let last = ""
  for (const [index, { message, parts }] of messages.entries()) {
    const at = (key: string) => [...root, "messages", index, "message", key]
    const { id } = message
    checkID(id, "msg", at("id"))
    if (message.sessionID !== session.id)
      throw misfit(at("sessionID"), `It is not that of session ${session.id}.`)
    if (id <= last) throw misfit(at("id"), `Message ${id} does not come after the one before it.`)
    if (message.role === "assistant" && !seen.has(message.parentID))
      throw misfit(at("parentID"), `Message ${id} answers one that is not there.`)
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
      throw misfit(at("sessionID"), `It is not that of session ${message.sessionID}.`)
    if (messageID !== message.id) throw misfit(at("messageID"), `It is not that of message ${message.id}.`)
    if (id <= last) throw misfit(at("id"), `Part ${id} does not come after the one before it.`)
    last = id
  }
}

async function recordOf(store: Store, session: Session): Promise<SessionRecord> {
  return {
    session,
    messages: await store.messages(session.id),
    todos: await store.todos(session.id),
  }
}

function changesOf({ session, messages, todos }: SessionRecord): Change[] {
  return [
    { kind: "session", session },
    ...messages.flatMap(({ message, parts }): Change[] => [
      { kind: "message", message },
      ...parts.map((part): Change => ({ kind: "part", part })),
    ]),
    ...(todos.length > 0 ? [{ kind: "todos" as const, sessionID: session.id, todos }] : []),
  ]
}

/** With the rest of the answer that the message begins or belongs to: a call never loses its result. */
function upTo(messages: readonly MessageWithParts[], at: string, id: string): MessageWithParts[] {
  const index = messages.findIndex(({ message }) => message.id === at)
  if (index < 0) throw new ArchiveError(`There is no message ${at} in session ${id}.`)
  const next = messages.findIndex(({ message }, place) => place > index && message.role === "user")
  return messages.slice(0, next < 0 ? undefined : next)
}

/** New ids in the order of the old ones. They are long and random, so that a text which holds one means it. */
function withNewIds(archive: Archive): Archive {
  const renamed = new Map<string, string>()
  const rename = (id: string, prefix: "ses" | "msg" | "prt") => renamed.set(id, newId(prefix))
  for (const { session, messages } of [archive, ...archive.children]) {
    rename(session.id, "ses")
    for (const { message, parts } of messages) {
      rename(message.id, "msg")
      for (const part of parts) rename(part.id, "prt")
    }
  }
  const text = JSON.stringify(archive).replace(/(?:ses|msg|prt)_\w+/g, (found) => renamed.get(found) ?? found)
  return Archive.parse(JSON.parse(text))
}
