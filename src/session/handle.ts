import type { EventOf, TackleEvent } from "../event/events.ts"
import type { RefusedFile, RestoredFile, UndoChoice } from "../files/put-back.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Spent } from "../schema/spending.ts"
import type { Todo } from "../schema/todo.ts"
import type { CommitOptions, MessagePage } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"
import type { SharedBudget } from "./budget.ts"
import type { CommandCall } from "./command.ts"
import type { InputEdit, Receipt, SendOptions } from "./inputs.ts"
import type { EventStreamOptions, SessionEvent } from "./session-events.ts"

/** Thrown when this engine is still running another operation on the session, such as a prompt or a compaction. */
export class SessionBusyError extends TackleError {
  constructor(id: string) {
    super(
      `Session ${id} is busy with a prompt or another operation. Wait until the operation has finished, or interrupt the session first.`,
      {
        code: "session.busy",
        recoverable: false,
      },
    )
  }
}

/** Thrown by a method that needs an open engine if the engine is closing or closed. */
export class EngineClosedError extends TackleError {
  constructor() {
    super(
      "This engine was closed. To continue, open another engine with createTackle. Stored sessions are not affected.",
      {
        code: "engine.closed",
        recoverable: false,
      },
    )
  }
}

/** Options for a prompt, such as attachments and limits. */
export interface PromptOptions {
  files?: readonly PromptFile[]
  /** Signal that interrupts the run when aborted. All parts are completed before the run ends. */
  signal?: AbortSignal
  /** Maximum number of steps. Overrides the agent's step limit. At least 1. */
  maxSteps?: number
  /**
   * Maximum number of tokens, including subagents and excluding cache reads. If a run is not complete when it reaches
   * the maximum, the model gets one last step without calls, and then the run ends with the status `limit`.
   */
  maxTokens?: number
  /**
   * Maximum cost in US dollars, at the prices in the config. A run that reaches the maximum ends in the same way as
   * with `maxTokens`. The run fails before it starts if the model's prices are unknown.
   */
  maxCost?: number
  /**
   * JSON Schema for the answer. The `text` of a completed run is then valid JSON with defaults filled in. The run fails
   * if the model stops without a valid answer. The run fails before it starts if the schema cannot be used.
   */
  outputSchema?: Readonly<Record<string, unknown>>
  /** Model for this and later prompts in the session, as `provider/model`. */
  model?: string
  /** Values that the tools of this prompt and its subagents receive as `ctx.extra`. Not stored. */
  extra?: Readonly<Record<string, unknown>>
  /** The parsed command, if the text calls one. The model receives the expanded template. */
  command?: CommandCall
  /** The `task` call that started this prompt. Permission requests include this call. */
  caller?: NonNullable<CallReference["parent"]>
  /** The budget of the parent run. */
  shared?: SharedBudget
}

/** A running prompt. Iteration yields its events in order. Leaving the loop early interrupts the run. */
export interface PromptRun extends AsyncIterable<TackleEvent> {
  /** Resolves with the last event. Never rejects. A run that cannot start ends as `failed`. */
  readonly completed: Promise<EventOf<"run.completed">>
}

/**
 * The result of a compaction. `before` and `after` are the sizes of the model's history in characters. `pruned` is the
 * number of outputs that were replaced with references to files. `spent` is the usage of all attempts to summarize. If
 * nothing was pruned or summarized, the history was too short to compact.
 */
export interface CompactionResult {
  before: number
  after: number
  pruned: number
  summarized: boolean
  spent: Spent[]
}

/** A change to a session's properties. `model` is `provider/model`. */
export interface SessionChange {
  title?: string
  agent?: string
  model?: string
}

/** Selects the turns to undo, and what happens to files that cannot be restored. */
export interface UndoOptions extends UndoChoice {
  /**
   * Id of a user message. Undoes the turn of this message and all later turns as one operation, which restores all
   * files or none. Cannot be combined with `others` or `skip`. Default: only the latest turn that changed files and is
   * not undone.
   */
  through?: string
}

/** The result of an undo or redo. */
export interface UndoResult {
  /**
   * Id of the message that started the turn, or the earliest turn if several were undone. `prompt` is the text of this
   * message.
   */
  messageID: string
  prompt: string
  files: RestoredFile[]
  /** Files that were not changed, as requested by the options. */
  refused: RefusedFile[]
  /** Messages for the user about changes in the turn that could not be tracked, and modes that could not be set. */
  unseen: string[]
}

/** A session's pending inputs. All operations are atomic across processes. */
export interface SessionInputs {
  /** Returns the pending inputs, sorted by position. */
  list(): Promise<Input[]>
  /**
   * Changes a pending input. Throws `InputEndedError` if the input is no longer pending or is being delivered, and
   * `UsageError` if the id is unknown or the changed input is empty.
   */
  edit(id: string, edit: InputEdit): Promise<Input>
  /**
   * Withdraws a pending input. Throws `InputEndedError` if the input is no longer pending or is being delivered, and
   * `UsageError` if the id is unknown.
   */
  withdraw(id: string): Promise<Input>
  /** Continues the delivery of inputs after an interrupt. */
  resume(): Promise<void>
}

/**
 * Activity of a session. `waiting` means that the session or a subagent below it waits for a reply to a permission
 * request or a question.
 */
export type SessionStatus = "idle" | "running" | "waiting"

/** Access to one session: its inputs, prompts, messages, compaction and undo. */
export interface SessionHandle {
  readonly id: string
  info(): Session
  /**
   * Changes the title, or the agent and model of later prompts. The title can also change while this engine runs the
   * session. Throws `UsageError` if the agent or model is unknown, {@link SessionBusyError} if the session is busy, and
   * `SessionHeldError` if another engine is using the session.
   */
  update(change: SessionChange): Promise<Session>
  /**
   * Stores text from the user for delivery to the model, and starts a run if the session is idle. Resolves when the
   * input is stored. If an input with this id has already been sent, returns its current state. An input never answers
   * a permission request or a question. Throws `InputConflictError` if the id was used for different content or another
   * delivery, `UsageError` if the id is invalid or the input is empty, `TenantLimitError` if the tenant has reached a
   * limit, and {@link EngineClosedError} if the engine is closed.
   */
  send(text: string, options?: SendOptions): Promise<Receipt>
  readonly inputs: SessionInputs
  /**
   * Returns the session's events: first the changes after `after`, then the text so far of each part that is being
   * streamed, and then all events as they happen. See `streamSessionEvents`.
   */
  events(options?: EventStreamOptions): AsyncIterableIterator<SessionEvent>
  /**
   * Waits until no run is active and no input can be delivered, in this and other processes. After a run in another
   * process, waits at most one second for the next delivery. Resolves with the `run.completed` event of this engine's
   * latest run, if any. Rejects if the signal aborts.
   */
  wait(options?: { signal?: AbortSignal }): Promise<EventOf<"run.completed"> | undefined>
  /**
   * Stops the run, and pauses the pending inputs until the next input is sent or `inputs.resume` is called. With
   * `clear`, withdraws the pending inputs instead and returns them. Also stops a run of another process. Resolves when
   * the run has ended, or when its process is no longer alive. In the second case, open calls are closed as after a
   * crash.
   */
  interrupt(options?: { clear?: boolean }): Promise<Input[]>
  /**
   * Starts a prompt. The run does not wait for a reader of its events. `@path` in the text attaches a file or directory
   * of the worktree, subject to the session's rules. Throws {@link SessionBusyError} if the session is busy, and {@link
   * EngineClosedError} if the engine is closed.
   */
  prompt(text: string, options?: PromptOptions): PromptRun
  /**
   * Stops the run of this engine, if any. Resolves when the run has ended. After that, this engine delivers no inputs
   * until the next `send`, `prompt` or `inputs.resume`, or until a held input is released.
   */
  abort(): Promise<void>
  /** Returns the stored messages of a page, or all messages. Read long sessions page by page. */
  messages(page?: MessagePage): Promise<MessageWithParts[]>
  /** Returns the session's to-do list. */
  todos(): Promise<Todo[]>
  /**
   * Returns the number of the session's latest change. To follow a session without a gap, read this number first, open
   * `events({ after: number })`, and then read the data: the stream contains everything that happens after the read.
   */
  sequence(): Promise<number>
  /**
   * Shortens the model's history: replaces old outputs with references to files, and old messages with a summary by the
   * session's model. Stored messages are kept. Does nothing if the history is too short. Throws `CompactionError` if no
   * summary makes the history small enough, {@link SessionBusyError} if the session is busy, `SessionHeldError` if
   * another engine is using the session, `TenantLimitError` if the tenant has reached a limit, and the errors of the
   * model request.
   */
  compact(options?: { signal?: AbortSignal }): Promise<CompactionResult>
  /**
   * Restores the files of the latest turn that changed files and is not undone. Until the next prompt, `redo` restores
   * the changes of the turn. If a file cannot be restored, for example because it has changed since the turn, and the
   * options do not exclude it, throws `UndoRefusedError` and changes no file. Throws `UsageError` if there is nothing
   * to undo, {@link SessionBusyError} if the session is busy, and `SessionHeldError` if another engine is using the
   * session.
   */
  undo(options?: UndoOptions): Promise<UndoResult>
  /**
   * Restores the changes of the most recently undone turn. After an undo of several turns, each call restores one turn,
   * oldest first. Throws the same errors as `undo`.
   */
  redo(options?: UndoChoice): Promise<UndoResult>
}

/** Options for {@link LocalSession.work}. */
export interface WorkOptions {
  /** True if the process that ran the session may have ended before the run was complete. */
  continues: boolean
  /** Signal that stops the work when aborted. */
  signal: AbortSignal
  /**
   * Runs in the transaction that ends the last run, so that the worker's job ends with it. Not called if the run could
   * not start, could not be stored, or must be continued by another worker. See `CommitOptions.also`.
   */
  onRelease?: CommitOptions["also"]
}

/**
 * How the work on a session ended. `held`: another engine uses the session, or its tenant has reached the limit of
 * running sessions. `stopped`: the signal aborted, or the database could not be reached. After `held` or `stopped`, a
 * worker must continue later.
 */
export type WorkOutcome = "done" | "held" | "stopped"

/** A session that this engine has opened. */
export interface LocalSession extends SessionHandle {
  /**
   * Does the work of a worker: continues a run whose process ended, then delivers the pending inputs. Resolves when
   * nothing is left to do, or when another worker must continue.
   */
  work(options: WorkOptions): Promise<WorkOutcome>
  /** Finishes an undo or redo whose process has ended, if any. Throws the errors of `undo`. */
  finishRestoring(): Promise<void>
  /** True while this engine runs, compacts, undoes or changes the session, or delivers its inputs. */
  readonly isActive: boolean
  /** Returns the parts that a model is streaming, with the text that was announced so far. */
  streaming(): Part[]
}
