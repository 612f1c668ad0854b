import type { Agent } from "../agent/agent.ts"
import type { CallOutcome, Turn } from "../call/context.ts"
import type { QuestionOutcome, Questions } from "../call/questions.ts"
import type { EventOf, EventType, TackleEvent } from "../event/events.ts"
import type { UndoChoice } from "../files/put-back.ts"
import type { McpPrompt, McpPromptMessage } from "../mcp/client/content.ts"
import type {
  McpResources,
  McpServerStatus,
  McpStatusOptions,
  PromptCall,
  ResourceWatch,
} from "../mcp/client/pool.ts"
import type { McpContents } from "../mcp/client/resources.ts"
import type { Credentials } from "../model/credentials.ts"
import type { ModelInfo } from "../model/model.ts"
import type { Explanation } from "../permission/explain.ts"
import type { ReplyOutcome } from "../permission/pending-requests.ts"
import type { PermissionAsk } from "../permission/request.ts"
import type { AuthHook } from "../plugin/auth.ts"
import type { RegistryProblem } from "../registry/registered-tool.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { SandboxState } from "../sandbox/sandbox.ts"
import type { Part } from "../schema/part.ts"
import type { Grant, PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { WaitingRequest } from "../schema/request.ts"
import type { ListedSession, Session } from "../schema/session.ts"
import type { Archive } from "../session/archive.ts"
import type { Command, CommandCall } from "../session/command.ts"
import type {
  CompactionResult,
  SessionHandle,
  SessionStatus,
  UndoOptions,
  UndoResult,
  WorkOptions,
  WorkOutcome,
} from "../session/handle.ts"
import type { Receipt, SendOptions } from "../session/inputs.ts"
import type { FileDiff } from "../session/session-diff.ts"
import type { UsageStats } from "../session/stats.ts"
import type { LeaseHolder, Store } from "../store/store.ts"
import type { Info } from "../tool/tool.ts"
import type { FindFiles } from "./find-files.ts"
import type { PruneChoice } from "./housekeeping.ts"
import type { Caller, CallerOptions, StandaloneCall } from "./standalone-calls.ts"

/**
 * Old sessions, oldest first: sessions that were deleted or, with `dryRun`, would be deleted, and sessions that are
 * kept because they are in use.
 */
export interface PruneResult {
  deleted: Session[]
  held: Session[]
}

/** An engine's sessions. */
export interface Sessions {
  /**
   * Creates a session. Throws `UsageError` if the agent or model is unknown, or if the model has no key or its package
   * is not installed.
   */
  create(options?: {
    agent?: string
    model?: string
    title?: string
    parentID?: string
    /** Name of the tenant whose limits apply: 1 to 64 letters, digits, `_`, `-` or `.`. Ignored with `parentID`. */
    tenant?: string
  }): Promise<SessionHandle>
  /** Returns a session's handle, or undefined if the session does not exist. */
  get(id: string): Promise<SessionHandle | undefined>
  /** Returns the parts that models are streaming into this engine's sessions, with the text announced so far. */
  streaming(): Part[]
  /**
   * Returns the most recently used session in this worktree, or undefined if the worktree has no session. Ignores
   * replays and subagent sessions.
   */
  latest(): Promise<SessionHandle | undefined>
  /**
   * Lists the sessions in this worktree, most recently used first. `everywhere` lists the sessions in all worktrees.
   * Subagent sessions are listed only if `parentID` is the id of their parent session. `search` lists only the sessions
   * that contain all its words, with a `match`: see `Store.search`. A blank `search` has no effect. Lists at most
   * `limit` (default: 100) sessions.
   */
  list(options?: {
    everywhere?: boolean
    limit?: number
    parentID?: string
    search?: string
  }): Promise<ListedSession[]>
  /**
   * Returns a session's status, or undefined if the session does not exist. `running` includes a run in another process
   * and, with the option `dispatch`, work that waits for a worker. `waiting` means that the session, or a subagent
   * below it, waits for a reply in any process.
   */
  status(id: string): Promise<SessionStatus | undefined>
  /** The engine as a lease holder. */
  readonly holder: LeaseHolder
  /**
   * Does the work of a worker on a session: continues a run whose process ended, then delivers the pending inputs.
   * Returns undefined if the session does not exist.
   */
  work(id: string, options: WorkOptions): Promise<WorkOutcome | undefined>
  /**
   * Deletes a session with its subagents' sessions and all their data. First stops their runs in this engine. Returns
   * false if the session does not exist. Throws `SessionHeldError` if another engine uses one of these sessions.
   */
  delete(id: string): Promise<boolean>
  /**
   * Returns the usage of this worktree's sessions. `everywhere` includes all worktrees. `session` limits the result to
   * one session and its subagents.
   */
  stats(options?: { everywhere?: boolean; session?: string }): Promise<UsageStats>
  /**
   * Deletes old sessions in this worktree, or in all worktrees with `everywhere`. With `dryRun`, deletes nothing.
   * Returns the sessions that were deleted or, with `dryRun`, would be deleted, and the sessions that are kept because
   * they are in use. Throws `UsageError` if no criterion is given.
   */
  prune(options: PruneChoice & { everywhere?: boolean; dryRun?: boolean }): Promise<PruneResult>
  /** Runs `SessionHandle.compact` on a session. Returns undefined if the session does not exist. */
  compact(id: string, options?: { signal?: AbortSignal }): Promise<CompactionResult | undefined>
  /** Runs `SessionHandle.undo` on a session. Returns undefined if the session does not exist. */
  undo(id: string, options?: UndoOptions): Promise<UndoResult | undefined>
  /** Runs `SessionHandle.redo` on a session. Returns undefined if the session does not exist. */
  redo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  /**
   * Returns a session and its subagents' sessions, with their messages and to-do lists. `sanitize` removes all texts,
   * file names and paths. Returns undefined if the session does not exist.
   */
  export(id: string, options?: { sanitize?: boolean }): Promise<Archive | undefined>
  /**
   * Compares each file that a session changed: its content before the first change with its content after the last.
   * Turns that were undone are not included. Returns undefined if the session does not exist.
   */
  diff(id: string): Promise<FileDiff[] | undefined>
  /**
   * Stores an archive as a session in this worktree. `copy` assigns new ids. Throws `ArchiveError` if the archive is
   * invalid or contains a session that already exists.
   */
  import(archive: unknown, options?: { copy?: boolean; tenant?: string }): Promise<SessionHandle>
  /**
   * Creates a session with a copy of another session's history. `at` is the id of a message: the copy ends after the
   * turn with this message. Returns undefined if the session does not exist. Throws `ArchiveError` if the message is
   * unknown.
   */
  fork(id: string, options?: { at?: string }): Promise<SessionHandle | undefined>
}

/** An engine's tools. */
export interface ToolRegistry {
  /** Returns the ids of all tools in the order in which they are offered. */
  ids(): string[]
  /** Returns a tool as it was defined, before it is prepared for an agent. */
  get(id: string): Info | undefined
  /**
   * Returns the tools that are offered to an agent with models from a provider. Default: the default agent, with the
   * model in the options.
   */
  tools(scope?: { provider?: string; agent?: string }): Promise<ToolListing[]>
}

/** The state of a project and of the machine that it is on. */
export interface ProjectStatus {
  directory: string
  worktree: string
  /** The checked-out git branch, if any. */
  branch?: string
  /** Whether commands run in a sandbox. */
  sandbox: SandboxState
}

/** A tool-calling engine. */
export interface Tackle {
  /** Id of the engine, unique among all engines on the store. */
  readonly id: string
  readonly registry: ToolRegistry
  readonly directory: string
  readonly worktree: string
  readonly dataDirectory: string
  readonly sessions: Sessions
  readonly agents: ReadonlyMap<string, Agent>
  readonly store: Store
  /**
   * Calls the listener for every event of the type. Permission requests and questions include functions that answer
   * them. Returns a function that unsubscribes.
   */
  on(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  on(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  on<T extends Exclude<EventType, "permission.asked" | "question.asked">>(
    type: T,
    listener: (event: EventOf<T>) => void,
  ): () => void
  /**
   * Calls the listener for every event in this engine. With `otherProcesses`, also calls the listener for permission
   * requests and questions from other processes on the same store, including those that are already waiting, and for
   * the answers to them.
   */
  subscribe(listener: (event: TackleEvent) => void, options?: { otherProcesses?: boolean }): () => void
  /**
   * Answers a permission request from this engine, or from another process on the same store. Only the first reply from
   * any process counts. The reply has no effect if the request is unknown, has already been answered or was withdrawn.
   * The result says whether the reply was applied. Throws `UsageError` if the reply is invalid or allows more than the
   * request offers.
   */
  reply(requestID: string, reply: PermissionReply, source?: ReplySource): Promise<ReplyOutcome>
  /**
   * Returns the permission requests and questions that wait for the user, oldest first, including requests from other
   * processes on the same store. With `sessionID`, returns only requests from this session and its subagents.
   */
  requests(sessionID?: string): Promise<WaitingRequest[]>
  /**
   * Returns the waiting permission requests from this engine, oldest first. With `sessionID`, returns only requests
   * from this session.
   */
  pendingRequests(sessionID?: string): PermissionRequest[]
  /** Explains how the rules decide a request. Runs no tool and does not ask the user. */
  explain(request: PermissionAsk & { agent?: string }): Promise<Explanation>
  /**
   * Finds files by letters in their paths, for completions. Returns at most `limit` (default: 20) paths relative to the
   * directory, best match first. Omits ignored files, and files that a rule denies for `read`.
   */
  readonly findFiles: FindFiles
  /**
   * Sends text to a session, like `SessionHandle.send`. Text that starts with `/` may call a command, a skill or a
   * prompt from an MCP server. Resolves with undefined if the session does not exist. Also throws the errors of
   * `readCommand`.
   */
  send(sessionID: string, text: string, options?: Omit<SendOptions, "command">): Promise<Receipt | undefined>
  /**
   * Lists the permissions that the user granted with "always" in this worktree, for the project and its sessions,
   * oldest first.
   */
  grants(): Promise<Grant[]>
  /** Revokes grants in this worktree. If an id is unknown, throws `UsageError` and revokes no grants. */
  revoke(ids: readonly string[]): Promise<void>
  /**
   * Pending questions from this engine's `question` tools. `reply` and `reject` also answer questions from other
   * processes on the same store.
   */
  readonly questions: Pick<Questions, "reply" | "reject" | "pending">
  models(): ModelInfo[]
  /**
   * Returns the properties of a model by its name (`provider/model`), even if the list does not contain it. Rejects
   * with `UsageError` if sessions cannot select the model.
   */
  model(name: string): Promise<ModelInfo>
  /** Returns the ids of all providers: known providers, and providers from the config and from plugins. */
  providers(): string[]
  /** Returns the sign-in methods that plugins offer for providers, in the order of the plugins. */
  signIns(): AuthHook[]
  /** Stored keys and sign-ins for providers. They are in `auth.json` in the data directory. */
  readonly credentials: Pick<Credentials, "save" | "providers">
  /** Returns the commands and skills, sorted by name. For prompts from MCP servers, use `mcpPrompts`. */
  commands(): Command[]
  /**
   * Parses text that starts with `/`. Returns the call to a command, a skill or a prompt from an MCP server
   * (`/server:prompt`, filled in with the words after it). If the text calls none of these, returns a similar name, if
   * any. Pass the call to `SessionHandle.prompt`. Starts only the server that the text specifies. Throws `UsageError`
   * if an argument is missing, and the errors of `mcpPrompt`.
   */
  readCommand(
    text: string,
    options?: { signal?: AbortSignal },
  ): Promise<{ call: CommandCall } | { near?: string }>
  /**
   * Lists every tool. A tool that is not offered to the agent and model includes the reason. Waits for MCP servers to
   * start. Rejects with {@link AbortedError} if the signal aborts before the servers have started.
   */
  tools(scope?: { agent?: string; model?: string; signal?: AbortSignal }): Promise<ToolListing[]>
  /**
   * Lists every enabled MCP server. Starts servers that are not running. Rejects if the signal aborts before the
   * servers have started.
   */
  mcpServers(options?: McpStatusOptions & { signal?: AbortSignal }): Promise<McpServerStatus[]>
  /** Lists the prompts from all MCP servers, or from `server`. Starts these servers if they are not running. */
  mcpPrompts(signal?: AbortSignal, server?: string): Promise<McpPrompt[]>
  /**
   * Fills in a prompt. Throws `UsageError` if no MCP servers are enabled, `McpServerError` if the server does not exist
   * or is unavailable, and `McpCallError` if the prompt is unknown or an argument is missing.
   */
  mcpPrompt(asked: Omit<PromptCall, "signal"> & { signal?: AbortSignal }): Promise<McpPromptMessage[]>
  /** Lists the resources from MCP servers. Starts servers that are not running. */
  mcpResources(signal?: AbortSignal): Promise<McpResources[]>
  /** Reads a resource without a permission request. Throws the same errors as `mcpPrompt`. */
  readMcpResource(asked: { server: string; uri: string; signal?: AbortSignal }): Promise<McpContents>
  /**
   * Calls `onChanged` when the server reports a change to the resource, and when the server has restarted. The signal
   * aborts only the subscription request. The returned function unsubscribes. Requests no permission. Throws the same
   * errors as `mcpPrompt`.
   */
  watchMcpResource(asked: ResourceWatch & { signal?: AbortSignal }): Promise<() => Promise<void>>
  /**
   * Calls the listener when the tools of an MCP server change. `tools` may then return a different list. Returns a
   * function that unsubscribes.
   */
  onToolsChanged(listener: () => void): () => void
  /** Returns the state of the project. The first call tests the sandbox with a real command. */
  project(): Promise<ProjectStatus>
  /** Returns the problems that caused tools to be excluded. */
  problems(): readonly RegistryProblem[]
  /**
   * Makes one call through the whole pipeline, without a model or a stored session. A call that fails or is aborted
   * resolves with an error state. Rejects with {@link EngineClosedError} if the engine is closed, and with `UsageError`
   * if the agent is unknown.
   */
  callTool(call: StandaloneCall): Promise<CallOutcome & { turn: Turn }>
  /** Opens a caller for several standalone calls that share state. The code that opens it must close it. */
  caller(options?: CallerOptions): Caller
  /**
   * Ends runs, jobs, plugins, language servers and MCP servers, waits for them, and closes the store if the engine
   * opened it. Later prompts and calls throw {@link EngineClosedError}.
   */
  close(): Promise<void>
}

/** A permission request with a function that answers it. An `always` reply without a scope applies to the session. */
export interface AskedRequest extends PermissionRequest {
  reply(reply: PermissionReply["reply"] | PermissionReply): Promise<ReplyOutcome>
}

/** Questions with functions that answer them. */
export interface AskedQuestion extends QuestionRequest {
  /** Answers the questions. Expects one list per question. An empty list skips the question. */
  reply(answers: QuestionAnswers): QuestionOutcome | Promise<QuestionOutcome>
  reject(): QuestionOutcome | Promise<QuestionOutcome>
}
