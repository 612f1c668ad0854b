import type { FileCommits } from "../files/file-tracker.ts"
import {
  type Direction,
  putBack,
  type RefusedFile,
  type RestoredFile,
  type UndoChoice,
} from "../files/undo.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { FileChange, PatchPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { ContentStore } from "../store/content-store.ts"
import { UsageError } from "../util/errors.ts"
import { findNewest, type PageReader } from "./history.ts"
import type { Recorder } from "./recorder.ts"
import { updateTime } from "./update-time.ts"

/** The result of an undo or redo. */
export interface UndoResult {
  /** Id of the message that started the turn. `prompt` is its text. */
  messageID: string
  prompt: string
  files: RestoredFile[]
  /** Files that were not changed, as requested by the options. */
  refused: RefusedFile[]
  /** Messages for the user about changes of the turn that could not be tracked. */
  unseen: string[]
}

/**
 * Undoes the last turn whose file changes have not been undone, or redoes the turn that was undone last. Returns the
 * stored session and the result. Throws `UsageError` if no such turn exists, and `UndoRefusedError` if files have
 * changed since the turn.
 */
export async function undoTurn(
  session: Session,
  options: {
    direction: Direction
    choice: UndoChoice
    readPage: PageReader
    contents: ContentStore
    recorder: Recorder
    fileCommits: FileCommits
  },
): Promise<{ session: Session; result: UndoResult }> {
  const { direction, choice, readPage, contents, recorder, fileCommits } = options
  const { locks, trackTemporary } = fileCommits
  const undone = session.undone ?? []
  const last = undone.at(-1)
  const isNext = direction === "undo" ? isDone : ({ message }: MessageWithParts) => message.id === last
  const found = await findNewest(readPage, isNext)
  const patch = found?.parts.find(isPatch)
  if (!found || !patch) throw new NothingToUndoError(session.id, direction)

  const { files, refused, changes } = await locks.run(
    patch.files.map(({ path }) => path),
    () => putBack(patch.files, { ...choice, direction, contents, trackTemporary }),
  )
  patch.files = changes
  patch.undone = direction === "undo"
  const { id } = found.message
  const next: Session = {
    ...session,
    undone: direction === "undo" ? [...undone, id] : undone.slice(0, -1),
    time: updateTime(session),
  }
  await recorder.write({ parts: [{ ...patch }] })
  await recorder.session(next)
  const prompt = found.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  return {
    session: next,
    result: { messageID: id, prompt: prompt.join("\n"), files, refused, unseen: patch.unseen ?? [] },
  }
}

/**
 * Returns a note for the next prompt about undone changes, because the model's history still contains these changes.
 * Returns undefined if nothing was undone.
 */
export async function describeUndone(
  undone: readonly string[] | undefined,
  readPage: PageReader,
): Promise<string | undefined> {
  const changes: FileChange[] = []
  // The oldest turn was undone last.
  for (const id of undone?.toReversed() ?? []) {
    const turn = await findNewest(readPage, ({ message }) => message.id === id)
    changes.push(
      ...(turn?.parts ?? []).filter(isPatch).flatMap(({ files }) => files.filter(({ left }) => !left)),
    )
  }
  if (changes.length === 0) return undefined
  const paths = [...new Set(changes.map(({ path }) => path))]
  const more = paths.length > maxTold ? `\n- and ${paths.length - maxTold} more` : ""
  return `The user undid your changes to these files, so that they have their earlier content again:\n${paths
    .slice(0, maxTold)
    .map((path) => `- ${path}`)
    .join(
      "\n",
    )}${more}\nRead a file again before you change it, and do not repeat the undone changes unless asked.`
}

/** Maximum number of files in the note to the model. */
const maxTold = 50

/** The session has no turn to undo or redo. */
export class NothingToUndoError extends UsageError {
  constructor(sessionID: string, direction: Direction) {
    super(
      direction === "undo"
        ? `Nothing to undo in ${sessionID}: no turn of this session changed a file, or all changes have already been undone.`
        : `Nothing to redo in ${sessionID}: no turn was undone since the last prompt.`,
      undefined,
      "session.nothing-to-undo",
    )
  }
}

/** Returns true if the session has a turn to undo. Reads the messages, newest first. */
export async function canUndo(readPage: PageReader): Promise<boolean> {
  return (await findNewest(readPage, isDone)) !== undefined
}

function isDone({ parts }: MessageWithParts): boolean {
  return parts.some((part) => isPatch(part) && !part.undone && part.files.length > 0)
}

function isPatch(part: { type: string }): part is PatchPart {
  return part.type === "patch"
}
