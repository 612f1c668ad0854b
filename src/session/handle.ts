import type { EventOf, TackleEvent } from "../event/events.ts"
import type { UndoChoice } from "../files/undo.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { MessagePage } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"
import type { SharedBudget, Spent } from "./budget.ts"
import type { CommandCall } from "./command.ts"
import type { UndoResult } from "./undo.ts"

/** The session is busy with another prompt. */
export class SessionBusyError extends TackleError {
  constructor(id: string) {
    super(`Session ${id} is still working on a prompt. Wait for its run.completed, or abort it first.`, {
      code: "session.busy",
      recoverable: false,
    })
  }
}

/** The engine was closed and accepts no more work. */
export class EngineClosedError extends TackleError {
  constructor() {
    super(
      "This engine was closed. Open another one with createTackle to continue; nothing that was stored is lost.",
      {
        code: "engine.closed",
        recoverable: false,
      },
    )
  }
}

/** A file that comes with a prompt. */
export interface PromptFile {
  mime: string
  /** A data URL, or an absolute path. */
  url: string
  filename?: string
}

/** Attachments and limits of a prompt. */
export interface PromptOptions {
  files?: readonly PromptFile[]
  /** Interrupts the run when it fires. Every part is finished before the run ends. */
  signal?: AbortSignal
  /** Replaces the step limit of the agent. At least 1. */
  maxSteps?: number
  /**
   * Ends the run after the step that reaches this number of tokens, and one last step without calls. Includes
   * subagents, excludes cache reads.
   */
  maxTokens?: number
  /**
   * The same limit in US dollars, by the prices in the config. A run fails before it starts if the model has no
   * prices.
   */
  maxCost?: number
  /**
   * A JSON Schema. The run's `text` is then valid JSON with defaults filled in. The run fails if the model does not
   * write such an answer, or, before it starts, if the schema cannot be checked.
   */
  outputSchema?: Readonly<Record<string, unknown>>
  /** Changes the session's model, as `provider/model`. */
  model?: string
  /** The parsed command, if the text is one. The model receives its expanded template. */
  command?: CommandCall
  /** The `task` call that this prompt works for. Permission requests name it. */
  caller?: NonNullable<CallReference["parent"]>
  /** The budget of the parent run. */
  shared?: SharedBudget
}

/** A running prompt: its events in order, and its end. Leaving the loop early interrupts the run. */
export interface PromptRun extends AsyncIterable<TackleEvent> {
  /** Resolves with the last event. Never rejects: a run that could not start ends as `failed`. */
  readonly completed: Promise<EventOf<"run.completed">>
}

/**
 * Size of the session for the model, in characters, and the cost of the summary. If nothing was pruned or summarized,
 * there was nothing to compact yet.
 */
export interface CompactionResult {
  before: number
  after: number
  pruned: number
  summarized: boolean
  spent: Spent[]
}

/** A session that can be prompted. */
export interface SessionHandle {
  readonly id: string
  info(): Session
  /**
   * Starts a prompt at once, whether its events are read or not. `@path` in the text attaches a file or directory of
   * the worktree, subject to the rules of the session. Throws {@link SessionBusyError}, {@link EngineClosedError}.
   */
  prompt(text: string, options?: PromptOptions): PromptRun
  /** Interrupts the running prompt, if any. Resolves when it has ended. */
  abort(): Promise<void>
  /** Returns the stored messages of a page, or all messages. Read long sessions page by page. */
  messages(page?: MessagePage): Promise<MessageWithParts[]>
  /**
   * Replaces old messages by a summary in the model's view. Deletes nothing. Asks the session's model. Throws
   * `CompactionError` if that does not make it smaller, {@link SessionBusyError}, and the errors of the model
   * request.
   */
  compact(options?: { signal?: AbortSignal }): Promise<CompactionResult>
  /**
   * Restores the files of the last turn that changed any; `redo` reverts that until the next prompt. Restores all
   * files or none, and never a file that changed since: throws `UndoRefusedError` with their names. `others` leaves
   * those files alone, `skip` leaves the whole turn alone and continues with the one before. Throws `UsageError` if
   * there is nothing to do, and {@link SessionBusyError}.
   */
  undo(options?: UndoChoice): Promise<UndoResult>
  redo(options?: UndoChoice): Promise<UndoResult>
}
