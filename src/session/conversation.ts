import { createFileTracker, type ListableFileTracker } from "../files/file-tracker.ts"
import { createPromptBuilder } from "../model/convert.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { InstructionCapability } from "../tool/context.ts"
import { historyPages, type PageReader } from "./history.ts"
import { createNearInstructions } from "./near-instructions.ts"
import { neededPages } from "./needed-history.ts"
import { dropSummed } from "./prompt-history.ts"
import { createRecorder, type Recorder } from "./recorder.ts"
import { restoreLedger, settleInterrupted } from "./restore.ts"
import { givenBack } from "./run-command.ts"
import type { SessionServices } from "./services.ts"

/** A session as an engine has it in memory: what was read of it, and the one way in which it is written. */
export interface Conversation {
  /** As it is now. Whoever replaces it stores it too, by the recorder. */
  session: Session
  readonly recorder: Recorder
  /** What its calls read and wrote. */
  readonly files: ListableFileTracker
  readonly readPage: PageReader
  /** Absent where there are no instructions to be found beside files. */
  readonly instructions?: InstructionCapability
  /** Keeps what it has converted, so that a step costs what is new in it. */
  toPrompt: ReturnType<typeof createPromptBuilder>
  /**
   * What the model is given; all else stays in the store. Read when it is first asked for, with what a crash left open
   * closed. The same array until {@link forget}: what is appended to it is part of the conversation.
   */
  history(): Promise<MessageWithParts[]>
  /** What another engine added since this one looked becomes part of it. */
  catchUp(): Promise<void>
  /** To be called when messages of the history were replaced by others, or by less. */
  shortened(history: MessageWithParts[]): void
  /** Closes, in the store, what a run left open that could not store its own end. */
  settle(): Promise<void>
  /** The history is read anew when it is next asked for. */
  forget(): void
}

/** Reads nothing yet. */
export function openConversation(initial: Session, services: SessionServices): Conversation {
  const { store, bus, mask, fileCommits, instructionsNear } = services
  const { id } = initial
  const recorder = createRecorder({ sessionID: id, store, bus, mask })
  const files = createFileTracker(fileCommits)
  const readPage: PageReader = (page) => store.messages(id, page)
  let history: MessageWithParts[] | undefined
  let instructions: InstructionCapability | undefined

  async function read(): Promise<MessageWithParts[]> {
    const loaded: MessageWithParts[] = []
    for await (const page of neededPages(readPage)) {
      await settlePage(page)
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

  /** Those that the model was given and still has are not given again. */
  function watchInstructions(known: readonly MessageWithParts[]): void {
    if (instructionsNear) instructions = createNearInstructions(instructionsNear, known)
  }

  const conversation: Conversation = {
    session: givenBack(initial),
    recorder,
    files,
    readPage,
    ...(instructionsNear && {
      instructions: { near: async (file) => (await instructions?.near(file)) ?? [] },
    }),
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
      // Messages that were converted before may hold outputs which are pruned now.
      conversation.toPrompt = createPromptBuilder()
    },
    async settle() {
      for await (const page of historyPages(readPage)) await settlePage(page)
    },
    forget() {
      history = undefined
      conversation.toPrompt = createPromptBuilder()
    },
  }
  return conversation
}
