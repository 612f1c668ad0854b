import {
  type Direction,
  putBack,
  type UndoChoice,
  type UndoOutcome,
  UndoRefusedError,
} from "../files/put-back.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { FileChange, PatchPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import { type Conversation, updateTime } from "./conversation.ts"
import type { UndoOptions, UndoResult } from "./handle.ts"
import { findNewest, type PageReader } from "./history.ts"

/**
 * Undoes the latest turn whose file changes have not been undone, or several turns with `through`. A redo reapplies the
 * changes of the most recently undone turn. Throws `UsageError` if no such turn exists, and `UndoRefusedError` if files
 * cannot be restored, for example because they have changed since the turn.
 */
export async function undoTurn(
  conversation: Conversation,
  direction: Direction,
  { through, ...choice }: UndoOptions,
): Promise<UndoResult> {
  const { session, readPage } = conversation
  const turns =
    through === undefined
      ? await nextTurn(session, direction, readPage)
      : await turnsThrough(through, { direction, choice, readPage })
  const first = turns.at(-1)
  if (!first) throw new NothingToUndoError(session.id, direction, through)

  const messages = turns.map(({ entry }) => entry.message.id)
  const restoring = { direction, messages, ...(choice.others && { others: true as const }) }
  let outcome: UndoOutcome
  try {
    outcome = await restoreFiles(conversation, turns, {
      ...choice,
      direction,
      // On disk before the first file changes, so that the next process knows what to finish.
      onStart: () => saveSession(conversation, { restoring }, { durable: true }),
    })
  } catch (error) {
    if (conversation.session.restoring) await saveSession(conversation, { restoring: undefined })
    throw error
  }
  await recordRestored(conversation, turns, { direction, outcome })
  const { files, refused, problems } = outcome
  const { message, parts } = first.entry
  const prompt = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const unseen = [...turns.flatMap(({ patch }) => patch.unseen ?? []), ...problems]
  return { messageID: message.id, prompt: prompt.join("\n"), files, refused, unseen }
}

/**
 * Finishes the undo or redo that the session's `restoring` describes, because the process that began it has ended. If
 * it can no longer be finished, for example because the user has changed a file since, restores the files that it had
 * changed. Tells the user which of the two happened. Throws the errors of {@link undoTurn} if the files cannot be
 * written now.
 */
export async function finishRestoring(conversation: Conversation): Promise<void> {
  const { session, readPage, engine } = conversation
  if (!session.restoring) return
  const { direction, messages, others } = session.restoring
  const turns: ChangedTurn[] = []
  for (const id of messages) {
    const entry = await findNewest(readPage, ({ message }) => message.id === id)
    turns.push(...(entry ? changedTurn(entry) : []))
  }
  try {
    const outcome = await restoreFiles(conversation, turns, { direction, others })
    await recordRestored(conversation, turns, { direction, outcome })
    engine.onProblem(`an interrupted ${direction} was finished`, new InterruptedUndoError(session))
  } catch (error) {
    if (!(error instanceof UndoRefusedError)) throw error
    const back = direction === "undo" ? "redo" : "undo"
    await restoreFiles(conversation, turns, { direction: back, others: true }).catch((refusal: unknown) => {
      if (!(refusal instanceof UndoRefusedError)) throw refusal
    })
    await saveSession(conversation, { restoring: undefined })
    engine.onProblem(`an interrupted ${direction} was reverted`, new InterruptedUndoError(session, error))
  }
}

/** Tells the user what happened to an undo or redo whose process had ended. */
class InterruptedUndoError extends TackleError {
  constructor({ id, restoring }: Session, refusal?: UndoRefusedError) {
    const direction = restoring?.direction ?? "undo"
    const result = refusal
      ? `The files are as they were before. ${refusal.summary}`
      : `All files are now restored. To reverse this, run \`tackle session ${direction === "undo" ? "redo" : "undo"} ${id}\`.`
    super(
      `The process of the ${direction} in session ${id} ended before the ${direction} was complete. ${result}`,
      {
        code: "session.interrupted-undo",
        recoverable: true,
      },
    )
  }
}

function restoreFiles(
  { engine: { contents, fileCommits } }: Conversation,
  turns: readonly ChangedTurn[],
  choice: UndoChoice & { direction: Direction; onStart?(): Promise<void> },
): Promise<UndoOutcome> {
  const { locks, trackTemporary } = fileCommits
  return locks.run(
    turns.flatMap(({ patch }) => patch.files.map(({ path }) => path)),
    () => putBack(joinedChanges(turns), { ...choice, contents, trackTemporary, turns: turns.length }),
  )
}

/** Stores that the files of the turns are restored. */
async function recordRestored(
  conversation: Conversation,
  turns: readonly ChangedTurn[],
  { direction, outcome }: { direction: Direction; outcome: UndoOutcome },
): Promise<void> {
  const [only, ...others] = turns
  if (only && others.length === 0) only.patch.files = outcome.changes
  for (const { patch } of turns) patch.undone = direction === "undo"
  const { undone = [] } = conversation.session
  const ids = turns.map(({ entry }) => entry.message.id)
  const change = {
    undone: direction === "undo" ? [...undone, ...ids] : undone.slice(0, -1),
    restoring: undefined,
  }
  // One transaction, because a turn can be redone only if the session lists it.
  await saveSession(conversation, change, { parts: turns.map(({ patch }) => ({ ...patch })) })
}

async function saveSession(
  conversation: Conversation,
  change: Pick<Session, "restoring"> & Partial<Pick<Session, "undone">>,
  written: { parts?: PatchPart[]; durable?: boolean } = {},
): Promise<void> {
  const { session, recorder } = conversation
  const next: Session = { ...session, ...change, time: updateTime(session) }
  await recorder.write({ ...written, session: next })
  conversation.session = next
}

/** A turn that changed files. */
interface ChangedTurn {
  entry: MessageWithParts
  patch: PatchPart
}

async function nextTurn(
  session: Session,
  direction: Direction,
  readPage: PageReader,
): Promise<ChangedTurn[]> {
  const last = session.undone?.at(-1)
  const isNext = direction === "undo" ? isDone : ({ message }: MessageWithParts) => message.id === last
  const found = await findNewest(readPage, isNext)
  return found ? changedTurn(found) : []
}

/** Returns the turns to undo, newest first, back to the turn that the message started. */
async function turnsThrough(
  messageID: string,
  { direction, choice, readPage }: { direction: Direction; choice: UndoChoice; readPage: PageReader },
): Promise<ChangedTurn[]> {
  if (direction === "redo" || choice.others || choice.skip)
    throw new UsageError("`through` cannot be used with a redo, `others` or `skip`.")
  const turns: ChangedTurn[] = []
  const target = await findNewest(readPage, (entry) => {
    if (isDone(entry)) turns.push(...changedTurn(entry))
    return entry.message.id === messageID
  })
  if (!target) throw new UsageError(`The message "${messageID}" is not part of the session.`)
  return turns
}

function changedTurn(entry: MessageWithParts): ChangedTurn[] {
  const patch = entry.parts.find(isPatch)
  return patch ? [{ entry, patch }] : []
}

/**
 * Joins the changes of several turns, newest first, into one change per file. If a file was also changed between two of
 * the turns, its change cannot be undone.
 */
function joinedChanges(turns: readonly ChangedTurn[]): FileChange[] {
  const [newest, ...older] = turns.map(({ patch }) => patch.files)
  if (older.length === 0) return newest ?? []
  const joined = new Map<string, FileChange>()
  for (const change of [newest ?? [], ...older].flat()) {
    const later = joined.get(change.path)
    joined.set(change.path, later ? joinChanges(change, later) : change)
  }
  return [...joined.values()]
}

function joinChanges(earlier: FileChange, later: FileChange): FileChange {
  const isGap =
    earlier.after?.hash !== later.before?.hash || Boolean(earlier.after?.link) !== Boolean(later.before?.link)
  const directories = [earlier.directory, later.directory].filter((directory) => directory !== undefined)
  return {
    ...{ path: later.path, before: earlier.before, after: later.after },
    fixed: later.fixed ?? earlier.fixed ?? (isGap ? "mixed" : undefined),
    // The topmost directory has the shortest path.
    directory: directories.sort((a, b) => a.length - b.length)[0],
  }
}

/**
 * Returns a note for the next prompt about undone changes, which the model's history still contains, or undefined if
 * nothing was undone.
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
  return `The user undid your changes to these files:\n${paths
    .slice(0, maxTold)
    .map((path) => `- ${path}`)
    .join(
      "\n",
    )}${more}\nRead a file again before you change it, and do not repeat the undone changes unless asked.`
}

/** Maximum number of files in the note to the model. */
const maxTold = 50

/** Thrown if the session has no turn to undo or redo. */
export class NothingToUndoError extends UsageError {
  constructor(sessionID: string, direction: Direction, through?: string) {
    const turn = through === undefined ? "no turn of this session" : `no turn from message ${through} on`
    super(
      direction === "undo"
        ? `Nothing to undo in ${sessionID}: ${turn} changed a file, or all changes have already been undone.`
        : `Nothing to redo in ${sessionID}: since the last prompt, no turn was undone, or all undone turns were redone.`,
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
