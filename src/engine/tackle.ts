import type { Agent } from "../agent/agent.ts"
import type { CallOutcome, Turn } from "../call/call.ts"
import type { QuestionOutcome, Questions } from "../call/questions.ts"
import type { EventOf, EventType, TackleEvent } from "../event/events.ts"
import type { UndoChoice } from "../files/undo.ts"
import type {
  McpResources,
  McpServerStatus,
  McpStatusOptions,
  PromptCall,
  ResourceWatch,
} from "../mcp/client/pool.ts"
import type { McpPrompt, McpPromptMessage } from "../mcp/client/prompts.ts"
import type { McpContents } from "../mcp/client/resources.ts"
import type { Credentials } from "../model/credentials.ts"
import type { ModelInfo } from "../model/model.ts"
import type { Explanation } from "../permission/explain.ts"
import type { ReplyOutcome } from "../permission/pending-requests.ts"
import type { PermissionAsk } from "../permission/request.ts"
import type { AuthHook } from "../plugin/auth.ts"
import type { RegistryProblem } from "../registry/registered-tool.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { Grant, PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import type { Archive } from "../session/archive.ts"
import type { Command, CommandCall } from "../session/command.ts"
import type { CompactionResult, SessionHandle } from "../session/handle.ts"
import type { PruneChoice } from "../session/prune.ts"
import type { UsageStats } from "../session/stats.ts"
import type { UndoResult } from "../session/undo.ts"
import type { Store } from "../store/store.ts"
import type { Caller, CallerOptions } from "./standalone-calls.ts"

/** Old sessions, oldest first: the deleted ones, and those in use. */
export interface PruneResult {
  deleted: Session[]
  held: Session[]
}

/** The sessions of an engine. */
export interface Sessions {
  /**
   * Creates a session. Throws `UsageError` for an unknown agent or model, and for a model without a key or package.
   */
  create(options?: {
    agent?: string
    model?: string
    title?: string
    parentID?: string
  }): Promise<SessionHandle>
  /** Returns undefined if the session does not exist. */
  get(id: string): Promise<SessionHandle | undefined>
  /** Returns the session of this worktree that was used last, without replays. */
  latest(): Promise<SessionHandle | undefined>
  /**
   * Lists the sessions of this worktree, newest first; with `everywhere`, of all worktrees. Excludes sessions of
   * subagents, unless `parentID` names the parent session.
   */
  list(options?: { everywhere?: boolean; limit?: number; parentID?: string }): Promise<Session[]>
  /** Deletes a session with everything in it. Returns false if it does not exist. */
  delete(id: string): Promise<boolean>
  /**
   * Returns the usage of this worktree's sessions; with `everywhere`, of all; with `session`, of one and its
   * subagents.
   */
  stats(options?: { everywhere?: boolean; session?: string }): Promise<UsageStats>
  /**
   * Deletes old sessions of this worktree; with `everywhere`, of all; with `dryRun`, none. Returns the deleted
   * sessions and those that stay because they are in use. Throws `UsageError` if nothing selects sessions.
   */
  prune(options: PruneChoice & { everywhere?: boolean; dryRun?: boolean }): Promise<PruneResult>
  /** Runs `SessionHandle.compact` by id. Undefined if the session does not exist. */
  compact(id: string, options?: { signal?: AbortSignal }): Promise<CompactionResult | undefined>
  /** Runs `SessionHandle.undo` by id. Undefined if the session does not exist. */
  undo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  redo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  /**
   * Returns everything stored about a session and its subagents' sessions. `sanitize` removes all texts, file names
   * and paths.
   */
  export(id: string, options?: { sanitize?: boolean }): Promise<Archive | undefined>
  /** Stores an archive as a session of this worktree. `copy` creates new ids. Throws `ArchiveError`. */
  import(archive: unknown, options?: { copy?: boolean }): Promise<SessionHandle>
  /**
   * Creates a session with a copy of another's history: all of it, or up to the end of the turn with the message `at`.
   * Undefined if the session does not exist. Throws `ArchiveError` for an unknown message.
   */
  fork(id: string, options?: { at?: string }): Promise<SessionHandle | undefined>
}

/** A tool-calling engine. */
export interface Tackle {
  readonly directory: string
  readonly worktree: string
  readonly dataDirectory: string
  readonly sessions: Sessions
  readonly agents: ReadonlyMap<string, Agent>
  readonly store: Store
  /**
   * Calls the listener for every event of the type. Requests come with a `reply` function. Returns a function that
   * unsubscribes.
   */
  on(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  on(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  on<T extends Exclude<EventType, "permission.asked" | "question.asked">>(
    type: T,
    listener: (event: EventOf<T>) => void,
  ): () => void
  subscribe(listener: (event: TackleEvent) => void): () => void
  /** Answers a request. A second, late or unknown answer has no effect, which the result reports. */
  reply(requestID: string, reply: PermissionReply, source?: ReplySource): Promise<ReplyOutcome>
  pendingRequests(sessionID?: string): PermissionRequest[]
  /** Explains the decision of the rules about a request. Runs nothing and asks nothing. */
  explain(request: PermissionAsk & { agent?: string }): Promise<Explanation>
  /** Lists the requests allowed with "always" in this worktree, for the project and its sessions, oldest first. */
  grants(): Promise<Grant[]>
  /** Revokes grants of this worktree. Throws `UsageError` for an unknown id, and then revokes none. */
  revoke(ids: readonly string[]): Promise<void>
  /** Questions of the `question` tool: the waiting ones, and functions to answer them. */
  readonly questions: Pick<Questions, "reply" | "reject" | "pending">
  models(): ModelInfo[]
  /** Returns the ids of all providers: known ones, and those of the config and plugins. */
  providers(): string[]
  /** Returns the sign-in methods that plugins have for providers, in their order. */
  signIns(): AuthHook[]
  /** Stored sign-ins to providers, in `auth.json` of the data directory. */
  readonly credentials: Pick<Credentials, "save" | "providers">
  /** Returns the commands and skills, by name. Prompts of MCP servers are in `mcpPrompts`. */
  commands(): Command[]
  /**
   * Parses a text that starts with `/`: a command or skill, a prompt of an MCP server (`/server:prompt`, filled in
   * with the words after it), or plain text, possibly with the name that was meant. Pass the call to
   * `SessionHandle.prompt`. Starts a server only if the text names it. Throws `UsageError` for a missing argument, and
   * what `mcpPrompt` throws.
   */
  readCommand(
    text: string,
    options?: { signal?: AbortSignal },
  ): Promise<{ call: CommandCall } | { near?: string }>
  /**
   * Lists every tool, with the reason if the agent and model are not offered it. Waits for MCP servers to start:
   * rejects with {@link AbortedError} if the signal fires first.
   */
  tools(scope?: { agent?: string; model?: string; signal?: AbortSignal }): Promise<ToolListing[]>
  /** Lists every MCP server in use, and starts it if necessary. Rejects if the signal fires first. */
  mcpServers(options?: McpStatusOptions & { signal?: AbortSignal }): Promise<McpServerStatus[]>
  /** Lists the prompts of MCP servers. Starts servers like `mcpServers`. */
  mcpPrompts(signal?: AbortSignal): Promise<McpPrompt[]>
  /**
   * Fills in a prompt. Throws `McpServerError` if the server does not exist, and `McpCallError` for an unknown prompt
   * or a missing argument.
   */
  mcpPrompt(asked: Omit<PromptCall, "signal"> & { signal?: AbortSignal }): Promise<McpPromptMessage[]>
  /** Lists the resources of MCP servers. Starts servers like `mcpServers`. */
  mcpResources(signal?: AbortSignal): Promise<McpResources[]>
  /** Reads a resource without a permission request. Throws like `mcpPrompt`. */
  readMcpResource(asked: { server: string; uri: string; signal?: AbortSignal }): Promise<McpContents>
  /**
   * Calls `onChanged` when the server reports a change of the resource, or was restarted. The signal ends the
   * subscription request; the returned function unsubscribes. Requests no permission; throws like `mcpPrompt`.
   */
  watchMcpResource(asked: ResourceWatch & { signal?: AbortSignal }): Promise<() => Promise<void>>
  /**
   * Calls the listener when an MCP server has other tools, so that `tools` may return others. Returns a function that
   * unsubscribes.
   */
  onToolsChanged(listener: () => void): () => void
  /** Returns the problems that excluded tools. */
  problems(): readonly RegistryProblem[]
  /**
   * Makes one call through the whole pipeline, without a model or a stored session. Rejects with {@link AbortedError}
   * if the signal fires before the call has started.
   */
  callTool(call: {
    tool: string
    input: string
    agent?: string
    signal?: AbortSignal
  }): Promise<CallOutcome & { turn: Turn }>
  /** Opens a caller for several such calls that share state. The opener must close it. */
  caller(options?: CallerOptions): Caller
  /**
   * Ends runs, jobs, language servers and MCP servers, waits for them, and closes the store. Later prompts and calls
   * throw {@link EngineClosedError}.
   */
  close(): Promise<void>
}

/** A request with a function that answers it. `always` alone applies to the session. */
export interface AskedRequest extends PermissionRequest {
  reply(reply: PermissionReply["reply"] | PermissionReply): Promise<ReplyOutcome>
}

/** Questions with functions that answer them. */
export interface AskedQuestion extends QuestionRequest {
  /** Expects one list per question. An empty list skips the question. */
  reply(answers: QuestionAnswers): QuestionOutcome
  reject(): QuestionOutcome
}
