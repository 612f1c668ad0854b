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

/** What became of old sessions, the oldest first. */
export interface PruneResult {
  deleted: Session[]
  held: Session[]
}

/** The sessions of one engine. */
export interface Sessions {
  /** Throws `UsageError` for an unknown agent or model, and for a model that has no key or package. */
  create(options?: {
    agent?: string
    model?: string
    title?: string
    parentID?: string
  }): Promise<SessionHandle>
  /** Undefined where there is none. */
  get(id: string): Promise<SessionHandle | undefined>
  /** The session of this worktree that was used last; replays of recorded runs are passed over. */
  latest(): Promise<SessionHandle | undefined>
  /**
   * Of this worktree, newest first; `everywhere` lists those of all. Sessions of subagents are left out, unless
   * `parentID` names the session that started them.
   */
  list(options?: { everywhere?: boolean; limit?: number; parentID?: string }): Promise<Session[]>
  /** With everything in it. False: there was none. */
  delete(id: string): Promise<boolean>
  /** What the sessions of this worktree used; of all with `everywhere`; of one and its subagents' with `session`. */
  stats(options?: { everywhere?: boolean; session?: string }): Promise<UsageStats>
  /**
   * Deletes old sessions of this worktree, `everywhere` those of all; with `dryRun` none. Returns those that went, and
   * those that stay because somebody works on them. Throws `UsageError` where nothing says which.
   */
  prune(options: PruneChoice & { everywhere?: boolean; dryRun?: boolean }): Promise<PruneResult>
  /** `SessionHandle.compact` by id. Undefined where there is no such session. */
  compact(id: string, options?: { signal?: AbortSignal }): Promise<CompactionResult | undefined>
  /** `SessionHandle.undo` by id. Undefined where there is no such session. */
  undo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  redo(id: string, options?: UndoChoice): Promise<UndoResult | undefined>
  /** All that is stored of a session and its subagents'; `sanitize` leaves out whatever was said, read, written or run. */
  export(id: string, options?: { sanitize?: boolean }): Promise<Archive | undefined>
  /** Stores an archive as a session of this worktree; `copy` gives everything new ids. Throws `ArchiveError`. */
  import(archive: unknown, options?: { copy?: boolean }): Promise<SessionHandle>
  /**
   * A new session with the history of another, whole or up to the end of the turn of the message `at`. Undefined where
   * there is none. Throws `ArchiveError` for a message that is not there.
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
  /** Calls the listener for every event of the type; requests come with their `reply`. Returns the function that ends it. */
  on(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  on(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  on<T extends Exclude<EventType, "permission.asked" | "question.asked">>(
    type: T,
    listener: (event: EventOf<T>) => void,
  ): () => void
  subscribe(listener: (event: TackleEvent) => void): () => void
  /** Answers a request once; a second, late or unknown answer changes nothing and says so. */
  reply(requestID: string, reply: PermissionReply, source?: ReplySource): Promise<ReplyOutcome>
  pendingRequests(sessionID?: string): PermissionRequest[]
  /** What the rules say to a request, and why. Nothing is run and nobody asked. */
  explain(request: PermissionAsk & { agent?: string }): Promise<Explanation>
  /** What was granted with "always" in this worktree, to the project and to its sessions, oldest first. */
  grants(): Promise<Grant[]>
  /** Takes grants of this worktree back. Throws `UsageError` for an id that none of them has, and then takes none. */
  revoke(ids: readonly string[]): Promise<void>
  /** The questions of the `question` tool: what waits, and the ways to answer. */
  readonly questions: Pick<Questions, "reply" | "reject" | "pending">
  models(): ModelInfo[]
  /** Ids of the providers whose models can be named: the known ones, and those of the config and plugins. */
  providers(): string[]
  /** Every way to sign in to a provider that plugins have, in their order. */
  signIns(): AuthHook[]
  /** What is kept of signing in to providers, in `auth.json` of the data directory. */
  readonly credentials: Pick<Credentials, "save" | "providers">
  /** The commands there are and the skills, by name; what MCP servers offer beside these is told by `mcpPrompts`. */
  commands(): Command[]
  /**
   * What a text beginning with `/` means: a command or skill, a prompt of an MCP server (`/server:prompt`, filled in with
   * the words behind it), or a text like any other, with the name that was perhaps meant. `SessionHandle.prompt` takes the
   * call. Starts servers only where the text names one. Throws `UsageError` for a missing argument, and like `mcpPrompt`.
   */
  readCommand(
    text: string,
    options?: { signal?: AbortSignal },
  ): Promise<{ call: CommandCall } | { near?: string }>
  /**
   * Every tool, with the reason where the agent and model are not offered it. Waits for MCP servers to start: rejects with
   * {@link AbortedError} when the signal fires first.
   */
  tools(scope?: { agent?: string; model?: string; signal?: AbortSignal }): Promise<ToolListing[]>
  /** Every MCP server in use, started where it was not yet. Rejects when the signal fires before they are. */
  mcpServers(options?: McpStatusOptions & { signal?: AbortSignal }): Promise<McpServerStatus[]>
  /** The prompts that MCP servers offer to people. Starts them like `mcpServers`. */
  mcpPrompts(signal?: AbortSignal): Promise<McpPrompt[]>
  /**
   * One of them, filled in. Throws `McpServerError` where the server is not there, and `McpCallError` where it has no such
   * prompt or lacks an argument.
   */
  mcpPrompt(asked: Omit<PromptCall, "signal"> & { signal?: AbortSignal }): Promise<McpPromptMessage[]>
  /** What MCP servers have to read. Starts them like `mcpServers`. */
  mcpResources(signal?: AbortSignal): Promise<McpResources[]>
  /** Reads one without asking for leave. Throws as `mcpPrompt` does. */
  readMcpResource(asked: { server: string; uri: string; signal?: AbortSignal }): Promise<McpContents>
  /**
   * Calls `onChanged` when the server says that the resource changed, or was started anew. The signal ends the asking;
   * what is returned ends the rest. Asks for no leave; throws as `mcpPrompt` does.
   */
  watchMcpResource(asked: ResourceWatch & { signal?: AbortSignal }): Promise<() => Promise<void>>
  /**
   * Calls the listener when an MCP server says that it has other tools: what `tools` tells may then differ. Returns the
   * end.
   */
  onToolsChanged(listener: () => void): () => void
  /** What kept tools out. */
  problems(): readonly RegistryProblem[]
  /**
   * One call through the whole pipeline, without a model or a stored session. Rejects with {@link AbortedError} where the
   * signal fires before the call has begun.
   */
  callTool(call: {
    tool: string
    input: string
    agent?: string
    signal?: AbortSignal
  }): Promise<CallOutcome & { turn: Turn }>
  /** Opens somebody who makes such calls over a time, and keeps a standing across them. Whoever opens one closes it. */
  caller(options?: CallerOptions): Caller
  /**
   * Ends jobs, language and MCP servers and runs, waits for them, closes the store. From then on prompts and calls throw
   * {@link EngineClosedError}.
   */
  close(): Promise<void>
}

/** A request that can be answered where it is heard of. `always` without more is for the session. */
export interface AskedRequest extends PermissionRequest {
  reply(reply: PermissionReply["reply"] | PermissionReply): Promise<ReplyOutcome>
}

/** Questions that can be answered where they are heard of. */
export interface AskedQuestion extends QuestionRequest {
  /** One list for each question, an empty one to leave it open. */
  reply(answers: QuestionAnswers): QuestionOutcome
  reject(): QuestionOutcome
}
