import type { SessionApi, TackleApi } from "../client/api.ts"
import type { MessageWithParts } from "../schema/message.ts"

/** A turn that a session can be rewound to: a prompt of the user. */
export interface RewindPoint {
  messageID: string
  text: string
  /** Number of turns with file changes that can be undone, from this turn on. */
  changedTurns: number
  /** Paths of the files that these turns changed, sorted. */
  files: string[]
  time: number
}

/** Returns the prompts of a session, newest first. */
export function rewindPoints(messages: readonly MessageWithParts[]): RewindPoint[] {
  let changedTurns = 0
  const files = new Set<string>()
  return messages.toReversed().flatMap(({ message, parts }) => {
    if (message.role !== "user") return []
    const patch = parts.find((part) => part.type === "patch" && !part.undone)
    if (patch?.type === "patch" && patch.files.length > 0) {
      changedTurns += 1
      for (const { path } of patch.files) files.add(path)
    }
    const text = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
    return text.length === 0
      ? []
      : [
          {
            ...{ messageID: message.id, text: text.join("\n"), time: message.time.created },
            ...{ changedTurns, files: [...files].sort() },
          },
        ]
  })
}

/** The parts of a session that are rewound. */
export type RewindTarget = "both" | "conversation" | "files"

/** The result of {@link rewind}. */
export interface RewindResult {
  /** The session to continue. If the conversation was rewound, a different session. */
  session: SessionApi
  /** Paths of the files that were restored or removed. */
  files: string[]
}

/**
 * Rewinds a session to the time before a prompt. Interrupts a run first. The conversation continues in a copy, so the
 * session itself stays as it is. Restores all files or none: if a file cannot be restored, throws `UndoRefusedError`, and
 * the conversation does not change.
 */
export async function rewind(
  { api, session }: { api: TackleApi; session: SessionApi },
  point: RewindPoint,
  target: RewindTarget,
): Promise<RewindResult> {
  await session.interrupt()
  const undone =
    target === "conversation" || point.changedTurns === 0
      ? undefined
      : await session.undo({ through: point.messageID })
  const files = undone?.files.map(({ path }) => path) ?? []
  if (target === "files") return { session, files }
  return { session: await copyBefore({ api, session }, point.messageID), files }
}

/** Returns a copy of the session that ends before a message. Returns a new session if the message is the first. */
async function copyBefore(
  { api, session }: { api: TackleApi; session: SessionApi },
  messageID: string,
): Promise<SessionApi> {
  const messages = await session.messages()
  const index = messages.findIndex(({ message }) => message.id === messageID)
  const before = messages[index - 1]
  const { agent, model } = await session.info()
  const copied = before && (await api.sessions.fork(session.id, { at: before.message.id }))
  return copied ?? api.sessions.create({ agent, model: model && `${model.providerID}/${model.modelID}` })
}
