import type { EventOf, TackleEvent } from "../event/events.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ListedSession, Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { SessionStatus } from "../session/handle.ts"
import type { FileDiff } from "../session/session-diff.ts"
import type { SessionApi, SessionsApi } from "./api.ts"
import { type ApiRequest, apiPath, type Connection, orUnknown } from "./connection.ts"
import { fetchSessionEvents } from "./event-stream.ts"

/**
 * State of a session on a server. `seq` is the number of the session's latest change. To receive all later changes,
 * call `events({ after: seq })`.
 */
export interface RemoteSession extends ListedSession {
  seq: number
  status: SessionStatus
}

/** A session on a server. */
export interface SessionClient extends SessionApi {
  info(): Promise<RemoteSession>
}

/** A server's sessions. */
export interface SessionsClient extends SessionsApi {
  create(options?: { agent?: string; model?: string; title?: string }): Promise<SessionClient>
  get(id: string): Promise<SessionClient | undefined>
  list(options?: { everywhere?: boolean; limit?: number; search?: string }): Promise<RemoteSession[]>
  import(archive: unknown, options?: { copy?: boolean }): Promise<SessionClient>
  fork(id: string, options?: { at?: string }): Promise<SessionClient | undefined>
}

/** One page of an API list. */
export interface Page<T> {
  items: T[]
  next?: string
}

/** Dependencies of {@link createSessions}. */
export interface SessionsOptions {
  connection: Connection
  silenceMs: number
  directory: string | undefined
  /** Returns the client's directory. Throws `ClientError` if the client has no directory. */
  project(): { directory: string }
  /** Returns a session's requests that wait for the user, as events. */
  asked(sessionID: string): Promise<TackleEvent[]>
}

/** Maximum number of items on one page. */
const pageSize = 1_000

/** Default for the number of listed sessions, as in the same process. */
const defaultListed = 100

/**
 * Maximum time in seconds that one request waits for a session to become idle. Must be less than the default {@link
 * ApiRequest.answerMs}. Short requests also let the client notice a lost connection early enough to repeat the request.
 */
const waitSeconds = 10

/** Creates the `sessions` object of a client. */
export function createSessions({
  connection,
  silenceMs,
  directory,
  project,
  asked,
}: SessionsOptions): SessionsClient {
  const { request } = connection
  const unknown = "session.unknown"

  /** Runs an operation on a session. Resolves with undefined if the session does not exist. */
  function operate<T>(id: string, name: string, body: object, signal?: AbortSignal): Promise<T | undefined> {
    return orUnknown(
      unknown,
      request<T>({ method: "POST", path: apiPath("session", id, name), body, signal }),
    )
  }

  return {
    async create(options = {}) {
      const body = { ...project(), ...options }
      return open(await request<RemoteSession>({ method: "POST", path: "/session", body }))
    },
    async get(id) {
      const session = await orUnknown(unknown, request<RemoteSession>({ path: apiPath("session", id) }))
      return session && open(session)
    },
    async list({ everywhere = false, limit = defaultListed, search } = {}) {
      const scope = everywhere ? undefined : directory
      const found: RemoteSession[] = []
      let cursor: string | undefined
      do {
        const count = Math.min(limit - found.length, pageSize)
        if (count < 1) break
        const query = { directory: scope, limit: count, cursor, search }
        const page = await request<Page<RemoteSession>>({ path: "/session", query })
        found.push(...page.items)
        cursor = page.next
      } while (cursor !== undefined)
      return found
    },
    async status(id) {
      return (await orUnknown(unknown, request<RemoteSession>({ path: apiPath("session", id) })))?.status
    },
    async delete(id) {
      const deleted = request({ method: "DELETE", path: apiPath("session", id) }).then(() => true)
      return (await orUnknown(unknown, deleted)) ?? false
    },
    compact: (id, { signal } = {}) => operate(id, "compact", {}, signal),
    undo: (id, choice = {}) => operate(id, "undo", choice),
    redo: (id, choice = {}) => operate(id, "redo", choice),
    stats: ({ session }) => request({ path: apiPath("session", session, "stats") }),
    async diff(id) {
      const path = apiPath("session", id, "diff")
      return (await orUnknown(unknown, request<Page<FileDiff>>({ path })))?.items
    },
    export: (id, { sanitize } = {}) =>
      orUnknown(unknown, request({ path: apiPath("session", id, "export"), query: { sanitize } })),
    async import(archive, { copy } = {}) {
      const body = { ...project(), archive, copy }
      return open(await request<RemoteSession>({ method: "POST", path: "/session/import", body }))
    },
    async fork(id, { at } = {}) {
      const copied = await operate<RemoteSession>(id, "fork", { at })
      return copied && open(copied)
    },
  }

  function open({ id }: Session): SessionClient {
    const path = (...more: string[]) => apiPath("session", id, ...more)
    const info = () => request<RemoteSession>({ path: path() })
    const post = <T>(name: string, body: object, more: Partial<ApiRequest> = {}) =>
      request<T>({ method: "POST", path: path(name), body, ...more })

    async function wait(signal?: AbortSignal) {
      for (;;) {
        const started = Date.now()
        const { status, run } = await post<{
          status: RemoteSession["status"]
          run?: EventOf<"run.completed">
        }>("wait", {}, { query: { timeout: waitSeconds }, signal, isRepeatable: true })
        // After a timeout, the response contains no run. The session may have become idle in the meantime.
        if (status === "idle" && (run || Date.now() - started < waitSeconds * 1000)) return run
      }
    }

    async function messages({
      before,
      limit = Number.POSITIVE_INFINITY,
    }: {
      before?: string
      limit?: number
    }) {
      let found: MessageWithParts[] = []
      let next = before
      do {
        const count = Math.min(limit - found.length, pageSize)
        if (count < 1) break
        const query = { limit: count, before: next }
        const page = await request<Page<MessageWithParts>>({ path: path("message"), query })
        found = [...page.items, ...found]
        next = page.next
      } while (next !== undefined)
      return found
    }

    return {
      id,
      info,
      update: (change) => request({ method: "PATCH", path: path(), body: change }),
      send(text, { id: inputID = newInputID(), delivery, files = [] } = {}) {
        const body = { id: inputID, delivery, ...contentOf(text, files) }
        // Because of the id, a second attempt returns the receipt from the first attempt.
        return post("input", body, { isRepeatable: true })
      },
      inputs: {
        async list() {
          return (await request<Page<Input>>({ path: path("input") })).items
        },
        edit: (inputID, edit) => request({ method: "PATCH", path: path("input", inputID), body: edit }),
        withdraw: (inputID) => request({ method: "DELETE", path: path("input", inputID) }),
        async resume() {
          await post("resume", {})
        },
      },
      events: ({ after, signal } = {}) =>
        fetchSessionEvents({
          connection,
          silenceMs,
          sessionID: id,
          after,
          signal,
          sequence: async () => (await request<RemoteSession>({ path: path(), isFirst: true })).seq,
          asked: () => asked(id),
        }),
      wait: ({ signal } = {}) => wait(signal),
      async interrupt({ clear } = {}) {
        return (await post<{ withdrawn: Input[] }>("interrupt", { clear })).withdrawn
      },
      messages: (page = {}) => messages(page),
      async todos() {
        return (await request<Page<Todo>>({ path: path("todo") })).items
      },
      sequence: async () => (await info()).seq,
      compact: ({ signal } = {}) => post("compact", {}, { signal }),
      undo: (choice = {}) => post("undo", choice),
      redo: (choice = {}) => post("redo", choice),
    }
  }
}

/** Returns a new id for an input that is sent without an id. */
function newInputID(): string {
  return `inp_${crypto.randomUUID().replaceAll("-", "")}`
}

/** Returns an input's content as the API expects it. */
function contentOf(text: string, files: readonly PromptFile[]): object {
  if (files.length === 0) return { text }
  const texts = text === "" ? [] : [{ type: "text", text }]
  return { parts: [...texts, ...files.map((file) => ({ type: "file", ...file }))] }
}
