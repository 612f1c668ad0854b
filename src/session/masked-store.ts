import type { Input } from "../schema/input.ts"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Change, Store } from "../store/store.ts"
import type { SecretMask } from "../tool/secrets.ts"

/**
 * Wraps a store to hide secrets in titles, messages, parts, to-dos, inputs and requests. Secrets are hidden on writing
 * and also on reading, because older records may contain them. Pending inputs are masked only on writing. Ids, session
 * paths and grant patterns remain unchanged, because lookups compare them with the original values.
 */
export function maskStore(store: Store, mask: SecretMask): Store {
  return {
    noteMs: store.noteMs,
    commit: (changes, options) =>
      store.commit(
        changes.map((change) => maskChange(change, mask)),
        options,
      ),
    async session(id) {
      const session = await store.session(id)
      return session && maskSession(session, mask)
    },
    sessions: async (filter) => (await store.sessions(filter)).map((session) => maskSession(session, mask)),
    page: async (filter) =>
      (await store.page(filter)).map(({ session, cursor }) => ({
        session: maskSession(session, mask),
        cursor,
      })),
    search: async (query, filter) =>
      (await store.search(query, filter)).map(({ session, text, ...place }) => ({
        ...place,
        session: maskSession(session, mask),
        text: mask.text(text),
      })),
    sequence: (sessionID) => store.sequence(sessionID),
    changes: async (sessionID, after) =>
      (await store.changes(sessionID, after)).map(({ seq, change }) => ({
        seq,
        change: maskChange(change, mask),
      })),
    watch: (listener) => store.watch(listener),
    watchControl: (listener) => store.watchControl(listener),
    updateInputs: (sessionID, named, decide, options) =>
      store.updateInputs(
        sessionID,
        named,
        (current) => decide(current).map((input) => maskInput(input, mask)),
        options,
      ),
    inputs: (sessionID) => store.inputs(sessionID),
    sessionsWithInputs: () => store.sessionsWithInputs(),
    deleteSession: (id) => store.deleteSession(id),
    messages: async (sessionID, page) => maskHistory(await store.messages(sessionID, page), mask),
    todos: async (sessionID) => mask.value(await store.todos(sessionID)),
    grants: (scope) => store.grants(scope),
    lease: (sessionID, holder, limit) => store.lease(sessionID, holder, limit),
    reserve:
      store.reserve &&
      (async ({ inputsOf, ...reserving }, query) => {
        const masked = (id: string, pending: readonly Input[]) =>
          inputsOf(id, pending).map((input) => maskInput(input, mask))
        const confirm = await store.reserve?.({ ...reserving, inputsOf: masked }, query)
        return () =>
          (confirm?.() ?? []).map(({ session, release }) => ({
            session: maskSession(session, mask),
            release,
          }))
      }),
    release: (lease, options) => store.release(lease, options),
    recover: async (settle) => {
      const unfinished = await store.recover((history) =>
        settle(maskHistory(history, mask)).map((change) => maskChange(change, mask)),
      )
      return unfinished.map((session) => maskSession(session, mask))
    },
    holder: (sessionID) => store.holder(sessionID),
    addUsage: (usage) => store.addUsage(usage),
    tenantUsage: (tenant, day) => store.tenantUsage(tenant, day),
    contents: store.contents,
    mail: store.mail,
    stop: (sessionID) => store.stop(sessionID),
    isStopping: (lease) => store.isStopping(lease),
    openRequest: (request, lease) => store.openRequest(mask.value(request), lease),
    requests: async () => mask.value(await store.requests()),
    request: async (id) => mask.value(await store.request(id)),
    answerRequest: async (id, answer) => mask.value(await store.answerRequest(id, mask.value(answer))),
    abandoned: store.abandoned && (async (sessionID) => (await store.abandoned?.(sessionID)) ?? []),
    reclaim: () => store.reclaim(),
    close: () => store.close(),
  }
}

function maskHistory(history: MessageWithParts[], mask: SecretMask): MessageWithParts[] {
  if (mask.empty) return history
  return history.map(({ message, parts }) => ({
    message: maskMessage(message, mask),
    parts: parts.map((part) => maskPart(part, mask)),
  }))
}

function maskChange<C extends Change>(change: C, mask: SecretMask): C
function maskChange(change: Change, mask: SecretMask): Change {
  if (mask.empty) return change
  switch (change.kind) {
    case "session":
      return { ...change, session: maskSession(change.session, mask) }
    case "message":
      return { ...change, message: maskMessage(change.message, mask) }
    case "part":
      return { ...change, part: maskPart(change.part, mask) }
    case "todos":
      return { ...change, todos: mask.value(change.todos) }
    case "input":
      return { ...change, input: maskInput(change.input, mask) }
    default:
      return change
  }
}

/**
 * Masks the text that the user wrote. The id and the digest remain unchanged, because they are compared with the
 * original values.
 */
function maskInput(input: Input, mask: SecretMask): Input {
  const { text, files, command } = input
  return { ...input, ...mask.value({ text, files, command }) }
}

function maskSession(session: Session, mask: SecretMask): Session {
  return { ...session, title: mask.text(session.title) }
}

/**
 * Masks only a message's error. The message's agent and model names remain unchanged, because they are compared with
 * the original values.
 */
function maskMessage(message: Message, mask: SecretMask): Message {
  return message.role === "user" || message.error === undefined
    ? message
    : { ...message, error: mask.value(message.error) }
}

function maskPart(part: Part, mask: SecretMask): Part {
  const masked = mask.value(part)
  if (masked.type !== "reasoning" || part.type !== "reasoning" || masked.text === part.text) return masked
  // The signature was computed from the original text. The provider would reject all later requests that contain the
  // masked text with this signature.
  const { metadata: _, ...unsigned } = masked
  return unsigned
}
