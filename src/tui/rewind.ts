import type { SessionApi, TackleApi } from "../client/api.ts"
import { adviceForSeveral, UndoRefusedError } from "../files/put-back.ts"
import type { PromptFile } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { UndoResult } from "../session/handle.ts"
import { UsageError } from "../util/errors.ts"

/** A user prompt to which the session can be rewound. */
export interface RewindPoint {
  messageID: string
  text: string
  /** Images that the user attached. Files mentioned in the text are attached again when the text is sent. */
  images: PromptFile[]
  /** True if the prompt was sent during a run. */
  isSteer: boolean
  /** Number of turns with file changes that can be undone, from this turn on. */
  changedTurns: number
  /** Paths of the files that these turns changed, sorted. */
  files: string[]
  time: number
}

/** Returns a session's prompts, newest first. */
export function rewindPoints(messages: readonly MessageWithParts[]): RewindPoint[] {
  let changedTurns = 0
  const files = new Set<string>()
  return messages.toReversed().flatMap(({ message, parts }, index) => {
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
            ...{ images: imagesOf(text.join("\n"), parts), isSteer: continues(messages.at(-index - 2)) },
            ...{ changedTurns, files: [...files].sort() },
          },
        ]
  })
}

/** Returns the attached images, one for each mark in the text. */
function imagesOf(text: string, parts: MessageWithParts["parts"]): PromptFile[] {
  const marks = new Set(text.match(/\[image \d+\]/g))
  const images = parts.filter((part) => part.type === "file" && part.mime.startsWith("image/"))
  return images.slice(0, marks.size).flatMap((part) => {
    if (part.type !== "file") return []
    const { mime, url, filename } = part
    return [{ mime, url, filename }]
  })
}

/** Returns true for a step that ended with calls, because the next prompt then belongs to the same turn. */
function continues(before: MessageWithParts | undefined): boolean {
  const { message } = before ?? {}
  return message?.role === "assistant" && message.finish === "tool-calls" && message.error === undefined
}

/** Returns a session's last turn with the texts of all its prompts, or undefined if the session has no prompt. */
export function lastTurn(messages: readonly MessageWithParts[]): RewindPoint | undefined {
  const points = rewindPoints(messages)
  const start = points.findIndex(({ isSteer }) => !isSteer)
  const turn = points.slice(0, start + 1).reverse()
  const [first] = turn
  if (!first) return undefined
  const text = turn.map((point) => point.text).join("\n\n")
  return { ...first, text, images: turn.flatMap(({ images }) => images) }
}

/** The parts of a session that are rewound. */
export type RewindTarget = "both" | "conversation" | "files"

/** The result of {@link rewind}. */
export interface RewindResult {
  /** The session to continue. Differs from the original session if the conversation was rewound. */
  session: SessionApi
  /** The result of the undo. Undefined if only the conversation was rewound, or if no turn had changed files. */
  undone: UndoResult | undefined
}

/**
 * Rewinds a session to the time before a prompt. Interrupts an active run first. The conversation continues in a copy,
 * so the original session's messages do not change. Restores all files or none: if a file cannot be restored, throws
 * the error from {@link withAdvice} and does not rewind the conversation.
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
      : await withAdvice("undo", session, () => session.undo({ through: point.messageID }))
  if (target === "files") return { session, undone }
  return { session: await copyBefore({ api, session }, point.messageID), undone }
}

/**
 * Runs a session's undo or redo. If some files cannot be restored, rejects with a `UsageError` that names these files
 * and the next step, because the original error's advice is for other interfaces. Suggests commands only for one turn
 * in a session in this process, because they cannot reach a server's sessions and act only on one turn.
 */
export async function withAdvice<T>(
  direction: "undo" | "redo",
  { id }: Pick<SessionApi, "id">,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isRefused = error instanceof Error && "code" in error && error.code === "session.undo"
    const end = isRefused ? error.message.lastIndexOf("\n") : -1
    if (!isRefused || end < 0) throw error
    throw new UsageError(`${error.message.slice(0, end)}\n${adviceFor(error, direction, id)}`, error)
  }
}

function adviceFor(error: Error, direction: "undo" | "redo", id: string): string {
  // Errors from a server have another class.
  if (!(error instanceof UndoRefusedError)) return "Check these files first."
  if (error.turns > 1) return adviceForSeveral
  const command = `tackle session ${direction} ${id}`
  return `Check these files first. In a shell, \`${command} --others\` restores only the other files, if any, and \`${command} --skip\` restores no files.`
}

/** Returns a copy of the session that ends before a message, or a new session if the message is the first. */
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
