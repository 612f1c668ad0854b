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

/** The session works on another prompt. */
export class SessionBusyError extends TackleError {
  constructor(id: string) {
    super(`Session ${id} is still working on a prompt. Wait for its run.completed, or abort it first.`, {
      code: "session.busy",
      recoverable: false,
    })
  }
}

/** The engine was closed, and works on nothing more. */
export class EngineClosedError extends TackleError {
  constructor() {
    super(
      "This engine was closed. Open another one with createTackle to go on; what is stored is all there.",
      {
        code: "engine.closed",
        recoverable: false,
      },
    )
  }
}

/** What a person gives a prompt beside its text. */
export interface PromptFile {
  mime: string
  /** A data URL, or an absolute path. */
  url: string
  filename?: string
}

/** What comes with a prompt, and how far its run may go. */
export interface PromptOptions {
  files?: readonly PromptFile[]
  /** Fires to interrupt the run; every part is finished before it ends. */
  signal?: AbortSignal
  /** Replaces the step limit of the agent. At least 1. */
  maxSteps?: number
  /**
   * Ends the run after the step that reaches so many tokens and a last one without calls. What subagents use counts, what
   * came from a cache does not.
   */
  maxTokens?: number
  /** The same in US dollars, by the prices of the config. A model without any makes the run fail before it begins. */
  maxCost?: number
  /**
   * A JSON Schema. The run's `text` is then JSON that fits it, with its defaults filled in; a run whose model does not
   * write such an answer fails. A schema that cannot be checked makes it fail before it begins.
   */
  outputSchema?: Readonly<Record<string, unknown>>
  /** `provider/model`: from now on the session's model. */
  model?: string
  /** The text is this command as the person wrote it: the model gets what its template makes of it. */
  command?: CommandCall
  /** The `task` call that this prompt works for: what is asked of a person names it. */
  caller?: NonNullable<CallReference["parent"]>
  /** The budget of that run. */
  shared?: SharedBudget
}

/** A run under way: its events in order, and its end. Leaving the loop early interrupts the run. */
export interface PromptRun extends AsyncIterable<TackleEvent> {
  /** Resolves with the last event; never rejects: a run that could not begin ends as `failed`. */
  readonly completed: Promise<EventOf<"run.completed">>
}

/**
 * Size of the session for the model, in characters, and what the summary cost. If nothing was pruned or summarized, there
 * was nothing to compact yet.
 */
export interface CompactionResult {
  before: number
  after: number
  pruned: number
  summarized: boolean
  spent: Spent[]
}

/** A conversation that can be prompted. */
export interface SessionHandle {
  readonly id: string
  info(): Session
  /**
   * Starts at once, whether anybody reads the events or not. `@path` in the text attaches that file or directory of
   * the worktree, by the rules of the session. Throws {@link SessionBusyError}, {@link EngineClosedError}.
   */
  prompt(text: string, options?: PromptOptions): PromptRun
  /** Interrupts the run under way, if there is one; resolves when it has ended. */
  abort(): Promise<void>
  /** Those of the page, all without one, as they are stored. A long session is read a page at a time. */
  messages(page?: MessagePage): Promise<MessageWithParts[]>
  /**
   * Replaces what is old by a summary, for the model alone: nothing is deleted. Asks the session's model. Throws
   * `CompactionError` where that does not make it smaller, {@link SessionBusyError}, and what asking throws.
   */
  compact(options?: { signal?: AbortSignal }): Promise<CompactionResult>
  /**
   * Puts the files of the last turn that changed any back to what they were before it; `redo` takes that back, until the
   * next prompt. All or none, and none that somebody else changed since: throws `UndoRefusedError`, which names them.
   * With `others` those are left alone, with `skip` all files of the turn, and the next one goes on beyond it. Throws `UsageError` where there is nothing to do, and {@link SessionBusyError}.
   */
  undo(options?: UndoChoice): Promise<UndoResult>
  redo(options?: UndoChoice): Promise<UndoResult>
}
