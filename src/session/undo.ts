import type { ContentStore } from "../files/content-store.ts"
import type { TrackTemporary } from "../files/temporary-files.ts"
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
import { UsageError } from "../util/errors.ts"
import { findNewest, type PageReader } from "./history.ts"
import type { Recorder } from "./recorder.ts"

/** What became of the files of one turn. */
export interface UndoResult {
  /** The message that began the turn, and its text. */
  messageID: string
  prompt: string
  files: RestoredFile[]
  /** Left as they are; empty unless that was asked for. */
  refused: RefusedFile[]
  /** What else the turn may have changed, in words. */
  unseen: string[]
}

/**
 * Undoes the last turn that changed files and is not undone, or does again the one that was undone last. The session is
 * returned as it is stored. Throws `UsageError` where there is none, and `UndoRefusedError`.
 */
export async function undoTurn(
  session: Session,
  options: {
    direction: Direction
    choice: UndoChoice
    readPage: PageReader
    contents: ContentStore
    recorder: Recorder
    trackTemporary: TrackTemporary
  },
): Promise<{ session: Session; result: UndoResult }> {
  const { direction, choice, readPage, contents, recorder, trackTemporary } = options
  const undone = session.undone ?? []
  const last = undone.at(-1)
  const isNext = direction === "undo" ? isDone : ({ message }: MessageWithParts) => message.id === last
  const found = await findNewest(readPage, isNext)
  const patch = found?.parts.find(isPatch)
  if (!found || !patch) throw new UsageError(nothing[direction])

  const { files, refused, changes } = await putBack(patch.files, {
    ...choice,
    direction,
    contents,
    trackTemporary,
  })
  patch.files = changes
  patch.undone = direction === "undo"
  const { id } = found.message
  const next: Session = {
    ...session,
    undone: direction === "undo" ? [...undone, id] : undone.slice(0, -1),
    time: { ...session.time, updated: Date.now() },
  }
  await recorder.write({ parts: [{ ...patch }] })
  await recorder.session(next)
  const prompt = found.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  return {
    session: next,
    result: { messageID: id, prompt: prompt.join("\n"), files, refused, unseen: patch.unseen ?? [] },
  }
}

/** What the model is told with the next prompt: it still believes in what it did. Undefined where nothing was undone. */
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
  return `The person has undone your changes to these files, which are again as they were before:\n${paths
    .slice(0, maxTold)
    .map((path) => `- ${path}`)
    .join(
      "\n",
    )}${more}\nRead a file again before you change it, and do not repeat what was undone unless asked to.`
}

/** So many files are named to the model. */
const maxTold = 50

const nothing: Record<Direction, string> = {
  undo: "There is nothing to undo: no turn of this session changed a file, or all are undone.",
  redo: "There is nothing to redo: no turn was undone since the last prompt.",
}

function isDone({ parts }: MessageWithParts): boolean {
  return parts.some((part) => isPatch(part) && !part.undone && part.files.length > 0)
}

function isPatch(part: { type: string }): part is PatchPart {
  return part.type === "patch"
}
