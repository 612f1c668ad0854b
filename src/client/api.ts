import type { Agent } from "../agent/agent.ts"
import type { CallOutcome } from "../call/context.ts"
import type { ProjectStatus } from "../engine/tackle.ts"
import type { EventOf, TackleEvent } from "../event/events.ts"
import type { UndoChoice } from "../files/put-back.ts"
import type { McpPrompt } from "../mcp/client/content.ts"
import type { McpServerStatus } from "../mcp/client/pool.ts"
import type { ModelInfo } from "../model/model.ts"
import type { ReplyOutcome } from "../permission/pending-requests.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { Input } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Grant, PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { WaitingRequest } from "../schema/request.ts"
import type { ListedSession, Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { ToolStateRunning } from "../schema/tool-state.ts"
import type { Archive } from "../session/archive.ts"
import type { Command } from "../session/command.ts"
import type {
  CompactionResult,
  SessionChange,
  SessionInputs,
  SessionStatus,
  UndoOptions,
  UndoResult,
} from "../session/handle.ts"
import type { Receipt, SendOptions } from "../session/inputs.ts"
import type { FileDiff } from "../session/session-diff.ts"
import type { EventStreamOptions, SessionEvent } from "../session/session-events.ts"
import type { UsageStats } from "../session/stats.ts"
import type { MessagePage } from "../store/store.ts"

/** A value, or a promise of the value over a network. Callers use `await` in both cases. */
export type Awaitable<T> = T | Promise<T>

/** Access to one session, in the same process or over a network. */
export interface SessionApi {
  readonly id: string
  info(): Awaitable<Session>
  /** Changes the title, or the agent and model of later prompts. */
  update(change: SessionChange): Promise<Session>
  /**
   * Stores text from the user for delivery to the model, and starts a run if the session is idle. If an input with this
   * id has already been sent, returns the current state of that input. Rejects with the code `input.conflict` if that
   * input has a different content or delivery.
   */
  send(text: string, options?: Pick<SendOptions, "id" | "delivery" | "files">): Promise<Receipt>
  readonly inputs: SessionInputs
  /**
   * Returns the session's events. First come the stored changes with a number greater than `after`. Without `after`, no
   * stored changes are sent. Then comes a `part.updated` without a number for each part that is being streamed, with
   * its text so far. All later events follow as they happen. Ends when the signal aborts or the session is deleted. In
   * the same process, also ends after a `reset` and when the engine closes.
   */
  events(options?: Pick<EventStreamOptions, "after" | "signal">): AsyncIterableIterator<SessionEvent>
  /**
   * Waits until the session is idle. Resolves with the `run.completed` event of the latest run that the engine has
   * seen, or with undefined if it has seen no run.
   */
  wait(options?: { signal?: AbortSignal }): Promise<EventOf<"run.completed"> | undefined>
  /** Stops the run and pauses the queue. With `clear`, withdraws the pending inputs instead and returns them. */
  interrupt(options?: { clear?: boolean }): Promise<Input[]>
  /**
   * Returns messages, oldest first. With `before`, returns only the messages before the message with this id. With
   * `limit`, returns only the newest of these messages.
   */
  messages(page?: Pick<MessagePage, "before" | "limit">): Promise<MessageWithParts[]>
  /** Returns the session's to-do list. */
  todos(): Promise<Todo[]>
  /**
   * Returns the number of the session's latest change. To follow a session without a gap, read this number first, open
   * `events({ after: number })`, and then read the data: the stream contains everything that happens after the read.
   */
  sequence(): Promise<number>
  /** Replaces old messages in the model's history with a summary. */
  compact(options?: { signal?: AbortSignal }): Promise<CompactionResult>
  /** Undoes the file changes of the latest turn that changed files, or of several turns. */
  undo(options?: UndoOptions): Promise<UndoResult>
  /**
   * Restores the changes of the most recently undone turn. After an undo of several turns, each call restores one turn,
   * oldest first.
   */
  redo(options?: UndoChoice): Promise<UndoResult>
}

/**
 * An engine's sessions. If the id is unknown, `delete` resolves with false, and other operations resolve with
 * undefined.
 */
export interface SessionsApi {
  create(options?: { agent?: string; model?: string; title?: string }): Promise<SessionApi>
  get(id: string): Promise<SessionApi | undefined>
  /**
   * Lists the sessions in this worktree, newest first, except subagent sessions. `everywhere` lists the sessions in all
   * worktrees. `search` selects the sessions that contain all its words. Lists at most `limit` sessions (default: 100).
   * To list more, increase `limit`. With `Infinity`, lists all of them.
   */
  list(options?: { everywhere?: boolean; limit?: number; search?: string }): Promise<ListedSession[]>
  status(id: string): Promise<SessionStatus | undefined>
  delete(id: string): Promise<boolean>
  compact(id: string, options?: { signal?: AbortSignal }): Promise<CompactionResult | undefined>
  undo(id: string, options?: UndoOptions): Promise<UndoResult | undefined>
  redo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  /** Returns the usage of a session and its subagents' sessions. All counts are 0 if the id is unknown. */
  stats(options: { session: string }): Promise<UsageStats>
  /** Lists the files that the session changed, with their diffs. Does not include changes that were undone. */
  diff(id: string): Promise<FileDiff[] | undefined>
  /**
   * Returns the archive of a session and its subagents' sessions. `sanitize` removes all texts, file names and paths.
   */
  export(id: string, options?: { sanitize?: boolean }): Promise<Archive | undefined>
  /** Stores an archive as a session. `copy` assigns new ids. */
  import(archive: unknown, options?: { copy?: boolean }): Promise<SessionApi>
  /** Copies a session. `at` is the id of a message: the copy ends after the turn that contains this message. */
  fork(id: string, options?: { at?: string }): Promise<SessionApi | undefined>
}

/**
 * The part of the engine's interface that works both in the same process and over a network. The library's `Tackle` and
 * the client for a server implement it.
 */
export interface TackleApi {
  readonly sessions: SessionsApi
  readonly agents: Awaitable<ReadonlyMap<string, Pick<Agent, "name" | "description" | "mode">>>
  /**
   * Calls the listener for every event. With `otherProcesses`, includes the permission requests and questions from
   * other processes on the same store, and the answers to them. A server always includes them. Returns a function that
   * unsubscribes.
   */
  subscribe(listener: (event: TackleEvent) => void, options?: { otherProcesses?: boolean }): () => void
  /**
   * Answers a permission request. An answer to a request that is unknown or already answered has no effect, and the
   * result says so.
   */
  reply(requestID: string, reply: PermissionReply): Promise<ReplyOutcome>
  /**
   * Returns the permission requests and questions that wait for the user, oldest first, including those from other
   * processes on the same store. With `sessionID`, returns only the requests from this session and its subagents.
   */
  requests(sessionID?: string): Promise<WaitingRequest[]>
  pendingRequests(sessionID?: string): Awaitable<PermissionRequest[]>
  readonly questions: {
    reply(requestID: string, answers: QuestionAnswers): Awaitable<"applied" | "unknown">
    reject(requestID: string): Awaitable<"applied" | "unknown">
    pending(sessionID?: string): Awaitable<QuestionRequest[]>
  }
  /**
   * Finds files in the project by letters in their paths, best match first. Returns at most `limit` paths (default:
   * 20). Omits ignored files and files that a rule denies for `read`.
   */
  findFiles(query: string, options?: { limit?: number; signal?: AbortSignal }): Promise<string[]>
  /**
   * Sends text like `SessionApi.send`. Text that starts with `/` can call a command, a skill or an MCP server's prompt.
   * Resolves with undefined if the session does not exist.
   */
  send(
    sessionID: string,
    text: string,
    options?: Pick<SendOptions, "id" | "delivery" | "files">,
  ): Promise<Receipt | undefined>
  /** Lists the permissions that the user granted with "always" in this worktree. */
  grants(): Promise<Grant[]>
  /** Revokes grants in this worktree. Rejects if an id is unknown. */
  revoke(ids: readonly string[]): Promise<void>
  commands(): Awaitable<Pick<Command, "name" | "description">[]>
  models(): Awaitable<Pick<ModelInfo, "ref" | "name" | "limit">[]>
  /**
   * Returns the properties of a model by its name (`provider/model`), even if the list does not contain it. Rejects if
   * sessions cannot select the model.
   */
  model(name: string): Promise<Pick<ModelInfo, "ref" | "name" | "limit">>
  /** Lists every tool. If a tool is not offered to the agent and model, its entry contains the reason. */
  tools(scope?: { agent?: string; model?: string; signal?: AbortSignal }): Promise<ToolListing[]>
  /** Lists every enabled MCP server. Starts servers that are not running. */
  mcpServers(options?: { signal?: AbortSignal }): Promise<McpServerStatus[]>
  /** Lists the prompts of MCP servers, which `send` calls as `/server:prompt`. Starts servers that are not running. */
  mcpPrompts(signal?: AbortSignal): Promise<McpPrompt[]>
  /** Returns the project's state. The first call tests the sandbox by running a command in it. */
  project(): Promise<ProjectStatus>
  /** Calls one tool, with the same checks as for a call by a model. Needs no model and stores no session. */
  callTool(call: {
    tool: string
    input: string | Readonly<Record<string, unknown>>
    agent?: string
    /** Identifies the call in requests, as `tool.messageID`: `msg_`, and letters and digits. Default: a new id. */
    messageID?: string
    signal?: AbortSignal
    /** Receives the progress of the running call, at most ten times a second. */
    onProgress?(state: ToolStateRunning): void
  }): Promise<CallOutcome>
}
