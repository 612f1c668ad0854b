import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { Change, Store } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import {
  Archive,
  ArchiveError,
  archiveHead,
  checkArchive,
  SessionExistsError,
  type SessionRecord,
  sanitize,
} from "./archive.ts"
import { copiedEarly, settleInterrupted } from "./crash-recovery.ts"
import { historyPages } from "./history.ts"
import { descendants } from "./lineage.ts"

/** Returns a session's archive, or undefined if the session does not exist. */
export async function exportSession(store: Store, id: string): Promise<Archive | undefined> {
  const session = await store.session(id)
  if (!session) return undefined
  const children: SessionRecord[] = []
  for (const child of await descendants(store, id)) children.push(await recordOf(store, child))
  return { ...archiveHead, ...(await recordOf(store, session)), children }
}

/**
 * Returns the result of {@link exportSession} as a stream of JSON text with one line per message. Only one page of
 * messages is in memory at a time. Returns undefined if the session does not exist.
 */
export async function archiveText(
  store: Store,
  id: string,
  options: { sanitize?: boolean } = {},
): Promise<AsyncIterable<string> | undefined> {
  const session = await store.session(id)
  const json = (value: unknown) => JSON.stringify(options.sanitize ? sanitize(value) : value)
  return session && archivePieces(store, session, json)
}

async function* archivePieces(
  store: Store,
  session: Session,
  json: (value: unknown) => string,
): AsyncGenerator<string> {
  yield `{${JSON.stringify(archiveHead).slice(1, -1)},`
  yield* recordPieces(store, session, json)
  yield ',"children":['
  for (const [index, child] of (await descendants(store, session.id)).entries()) {
    yield index === 0 ? "\n{" : ",\n{"
    yield* recordPieces(store, child, json)
    yield "}"
  }
  yield "]}\n"
}

async function* recordPieces(
  store: Store,
  session: Session,
  json: (value: unknown) => string,
): AsyncGenerator<string> {
  yield `"session":${json(session)},"messages":[`
  yield* listPieces(
    historyPages((page) => store.messages(session.id, page)),
    json,
  )
  yield `],"todos":${json(await store.todos(session.id))}`
}

/** Yields the items of a JSON list, one line each, without brackets. */
export async function* listPieces(
  pages: AsyncIterable<readonly unknown[]>,
  json: (value: unknown) => string = JSON.stringify,
): AsyncGenerator<string> {
  let separator = "\n"
  for await (const page of pages) {
    for (const item of page) {
      yield separator + json(item)
      separator = ",\n"
    }
  }
}

/**
 * Stores an archive as a session in the given directory, in one transaction. `forkedFrom` is the id of the session that
 * the archive was copied from. Throws {@link ArchiveError} if the archive is invalid or contains a session that already
 * exists.
 *
 * With `copy`, the ids of sessions, messages and parts are replaced with new ones, also inside texts. Without `copy`,
 * none of the sessions may exist yet. Unless `own` is true, the file changes in the archive cannot be undone, because
 * the author of the archive could choose the files that an undo writes. The archive's tenant is ignored, because an
 * archive must not determine the limits.
 */
export async function importSession(
  store: Store,
  value: unknown,
  place: {
    directory: string
    worktree: string
    tenant?: string
    copy?: boolean
    own?: boolean
    forkedFrom?: string
  },
): Promise<Session> {
  const given = checkArchive(value)
  const archive = place.copy ? withNewIds(given) : given
  const { directory, worktree, tenant, forkedFrom, own = false } = place
  const placed = (record: SessionRecord): SessionRecord => {
    const { session, ...rest } = own ? record : withoutChanges(record)
    // The archive's workspace may be on another machine.
    const workspace = own ? session.workspace : undefined
    // The original session finishes its own undo.
    return { ...rest, session: { ...session, directory, worktree, tenant, workspace, restoring: undefined } }
  }
  const main = placed(archive)
  // The parent session of a subagent is not part of the archive.
  delete main.session.parentID
  main.session.forkedFrom = forkedFrom
  const records = [main, ...archive.children.map(placed)]
  for (const { session } of records) {
    if (await store.session(session.id)) throw new SessionExistsError(session.id)
  }
  await store.commit(records.flatMap(changesOf))
  return main.session
}

/**
 * Creates a session with a copy of another session's history. With `at`, copies this message and all messages before
 * it, and then the model's messages up to the next message with the role `user`. Does not change the other session.
 * Returns undefined if the other session does not exist. Throws {@link ArchiveError} if the message is unknown.
 */
export async function forkSession(store: Store, id: string, at?: string): Promise<Session | undefined> {
  const archive = await exportSession(store, id)
  if (!archive) return undefined
  // A fork of a replay is a regular session.
  const {
    session: { replayed: _, ...session },
    messages,
  } = archive
  const now = currentTime()
  const own = {
    ...session,
    title: `${session.title} (fork)`.trimStart(),
    time: { created: now, updated: now },
  }
  const kept = at === undefined ? messages : upTo(messages, at, id)
  // The other session may be running.
  settleInterrupted(kept, copiedEarly)
  const { directory, worktree, tenant } = session
  return importSession(
    store,
    { ...archive, session: own, messages: kept, children: [] },
    { directory, worktree, tenant, copy: true, own: true, forkedFrom: id },
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

/**
 * Returns the messages up to the end of the answer that contains or follows the message `at`, so that the copy ends
 * with a complete answer.
 */
function upTo(messages: readonly MessageWithParts[], at: string, id: string): MessageWithParts[] {
  const index = messages.findIndex(({ message }) => message.id === at)
  if (index < 0) throw new ArchiveError(`Session ${id} has no message ${at}.`, "message.unknown")
  const next = messages.findIndex(({ message }, place) => place > index && message.role === "user")
  return messages.slice(0, next < 0 ? undefined : next)
}

/**
 * Replaces the ids of sessions, messages and parts with new ids in the same order, also inside texts. Ids are long and
 * random, so any text that contains an id refers to that id.
 */
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
