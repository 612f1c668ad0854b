import { createFileTracker, type ListableFileTracker } from "../files/file-tracker.ts"
import { createPromptBuilder } from "../model/history-to-prompt.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import { DamagedRowError, type Lease } from "../store/store.ts"
import type { FoundInstructions, InstructionCapability } from "../tool/context.ts"
import { continueIdsAfter } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import { givenBack } from "./command.ts"
import { restoreLedger, settleInterrupted } from "./crash-recovery.ts"
import { dropSummed, historyPages, neededPages, type PageReader } from "./history.ts"
import { createInputQueue, type InputQueue } from "./inputs.ts"
import { createRecorder, type Recorder } from "./recorder.ts"
import type { SessionEngine } from "./session-engine.ts"

/**
 * A session that an engine has loaded. Caches the session's history. The engine writes to the session only through this
 * object.
 */
export interface Conversation {
  readonly engine: SessionEngine
  /** The current session. Code that replaces this object must also store the new object with the recorder. */
  session: Session
  /**
   * The lease of the current run. A lost lease is kept until the next run, so that late writes of the old run fail.
   */
  lease?: Lease
  readonly recorder: Recorder
  /** The session's inputs that wait for delivery. */
  readonly inputs: InputQueue
  /** Files that the session's calls have read and written. */
  readonly files: ListableFileTracker
  readonly readPage: PageReader
  /** Finds instructions that apply to a file. Undefined if the engine does not search for such instructions. */
  readonly instructions?: InstructionCapability
  /** Caches converted messages, so that a step converts only its new messages. */
  toPrompt: ReturnType<typeof createPromptBuilder>
  /**
   * Returns the history that the model receives. Older messages remain in the store. The first call reads the store and
   * closes calls that a crash left open. Until {@link forget} is called, every call returns the same array, and
   * appending to it extends the conversation.
   */
  history(): Promise<MessageWithParts[]>
  /** Reads the session again. If another engine has changed the session, discards the cached history. */
  catchUp(): Promise<void>
  /**
   * Removes the messages that a summary replaces, and updates the caches. Must be called after outputs in the history
   * are pruned or a summary is added.
   */
  shortened(history: MessageWithParts[]): void
  /**
   * Closes messages and calls that are still open in the store because a run could not store its end. Stops at a damaged
   * message, because a later attempt could not close more.
   */
  settle(): Promise<void>
  /** Makes the next call to `history` read from the store again. */
  forget(): void
}

/** Opens a conversation without reading the store. */
export function openConversation(initial: Session, engine: SessionEngine): Conversation {
  const { store, bus, mask, fileCommits, instructionsNear } = engine
  const { id } = initial
  const recorder = createRecorder({ sessionID: id, store, bus, mask, lease: () => conversation.lease })
  const inputs = createInputQueue({
    store,
    bus,
    sessionID: id,
    holder: engine.holder,
    lease: () => conversation.lease,
    dispatch: engine.dispatch,
  })
  const files = createFileTracker(fileCommits)
  const readPage: PageReader = (page) => store.messages(id, page)
  let history: MessageWithParts[] | undefined
  let instructions: InstructionCapability | undefined

  async function read(): Promise<MessageWithParts[]> {
    const loaded: MessageWithParts[] = []
    for await (const page of neededPages(readPage)) {
      await settlePage(page)
      continueIds(page)
      restoreLedger(page, files)
      loaded.push(...page)
      dropSummed(loaded)
    }
    watchInstructions(loaded)
    return loaded
  }

  async function settlePage(page: readonly MessageWithParts[]): Promise<void> {
    const settled = settleInterrupted(page)
    if (settled.messages.length + settled.parts.length > 0) await recorder.write(settled)
  }

  /** Tracks which instructions the model has in its history, so that they are not repeated. */
  function watchInstructions(known: readonly MessageWithParts[]): void {
    if (instructionsNear) instructions = createNearInstructions(instructionsNear, known)
  }

  const conversation: Conversation = {
    engine,
    session: givenBack(initial),
    recorder,
    inputs,
    files,
    readPage,
    instructions: instructionsNear && { near: async (file) => (await instructions?.near(file)) ?? [] },
    toPrompt: createPromptBuilder(),
    async history() {
      history ??= await read()
      return history
    },
    async catchUp() {
      const stored = await store.session(id)
      if (!stored || stored.time.updated === conversation.session.time.updated) return
      conversation.session = givenBack(stored)
      conversation.forget()
    },
    shortened(shorter) {
      dropSummed(shorter)
      watchInstructions(shorter)
      // Cached messages may contain outputs that have since been pruned.
      conversation.toPrompt = createPromptBuilder()
    },
    async settle() {
      try {
        for await (const page of historyPages(readPage)) await settlePage(page)
      } catch (error) {
        if (!(error instanceof DamagedRowError)) throw error
      }
    },
    forget() {
      history = undefined
      conversation.toPrompt = createPromptBuilder()
    },
  }
  return conversation
}

/**
 * Creates a capability that returns each instruction file once. Does not return files that the metadata of earlier
 * calls in the history lists as `instructions`, unless the outputs of these calls were pruned.
 */
export function createNearInstructions(
  find: (file: string) => Promise<FoundInstructions[]>,
  history: readonly MessageWithParts[],
): InstructionCapability {
  const given = new Set(history.flatMap(({ parts }) => parts.flatMap(givenIn)))
  return {
    async near(file) {
      const found = await find(file)
      const fresh = found.filter(({ path }) => !given.has(path))
      for (const { path } of found) given.add(path)
      return fresh
    },
  }
}

/**
 * Makes new ids sort after the ids of existing messages, even if a process with a fast clock created those messages.
 */
function continueIds(page: readonly MessageWithParts[]): void {
  for (const { message, parts } of page) {
    continueIdsAfter(message.id)
    for (const { id } of parts) continueIdsAfter(id)
  }
}

function givenIn(part: MessageWithParts["parts"][number]): string[] {
  if (part.type !== "tool" || part.state.status !== "completed" || part.state.pruned !== undefined) return []
  const { instructions } = part.state.metadata
  return Array.isArray(instructions) ? instructions.filter((path) => typeof path === "string") : []
}

/**
 * Returns the `time` field for a session that is being changed. Each update time is later than the previous one, even
 * if the clock was set back. Update times order the sessions and reveal changes by other engines.
 */
export function updateTime({ time }: Session): Session["time"] {
  return { ...time, updated: Math.max(currentTime(), time.updated + 1) }
}
