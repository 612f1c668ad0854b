import type { Agent } from "../agent/agent.ts"
import type { Engine, RecordedResults } from "../call/context.ts"
import type { Bus } from "../event/bus.ts"
import type { FileCommits } from "../files/file-tracker.ts"
import type { ChangeCapability, TurnChangesOptions } from "../files/turn-changes.ts"
import type { Model } from "../model/model.ts"
import type { RetryLimits } from "../model/retry.ts"
import type { StreamLimits } from "../model/stream.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { ContentStore } from "../store/content-store.ts"
import type { Lease, LeaseHolder, Store } from "../store/store.ts"
import type { FoundInstructions } from "../tool/context.ts"
import type { SessionHandle } from "./handle.ts"
import type { Dispatch } from "./inputs.ts"
import type { Lineage } from "./lineage.ts"
import type { MentionedFiles } from "./mentions.ts"
import type { RunSlots } from "./run-slots.ts"
import type { OtherRequests } from "./shared-requests.ts"
import type { StreamRelay } from "./stream-relay.ts"
import type { TenantGuard } from "./tenant-limits.ts"

/** The engine services that sessions need, in addition to the services for calls. */
export interface SessionEngine extends Engine {
  /** Throws `EngineClosedError` if the engine is closed. */
  assertOpen(): void
  /** Signal that aborts when the engine begins to close. */
  closing: AbortSignal
  /** Signal that aborts when all runs have ended and the engine closes. */
  ended: AbortSignal
  /** Directory in which the agents work. */
  directory: string
  /** The project's root directory. */
  worktree: string
  /** Name of the agent for new sessions and standalone calls. */
  defaultAgent: string
  store: Store
  bus: Bus
  /** Identifies this engine as the holder of a session's lease. */
  holder: LeaseHolder
  /** The leases that this engine holds, keyed by session id. */
  leases: Map<string, Lease>
  /** Requests that a worker run a session. Undefined if this engine runs its sessions itself. */
  dispatch?: Dispatch
  /**
   * Exchanges events that are not stored, such as streamed text, with other engines. Undefined if only one machine can
   * use the store.
   */
  relay?: StreamRelay
  /** The requests of other engines on the same store. */
  otherRequests: OtherRequests
  /**
   * Resolves when the processes and temporary files of killed runs have been cleaned up. Runs, compactions and undo
   * operations wait for this promise.
   */
  cleared: Promise<void>
  /**
   * Maximum total size of third-party tool definitions, in bytes. If the definitions are larger, the model must find
   * these tools with `tool_search`. If undefined, all tools are offered.
   */
  toolBytes?: number
  /** Locks and journals shared by all sessions that write files. */
  fileCommits: FileCommits
  lineage: Lineage
  subagents: SubagentServices
  /** Returns the reasons why tools cannot work for this agent and session, keyed by tool id. */
  unavailableTools(agent: Agent, session?: Session): Readonly<Record<string, string>>
  /**
   * Returns the path of the session's plan file, or undefined if plan mode is off or the session belongs to a subagent.
   */
  planFile(session: Session): string | undefined
  /** Returns the agent with this name. Throws `UsageError` if no such agent exists. */
  agent(name: string): Agent
  /**
   * `follow` reloads agents, commands and skills whose files have changed, and is cheap if no file has changed.
   * `changedLately` returns true if `follow` may find a change.
   */
  definitions: { follow(): Promise<void>; changedLately(): boolean }
  model(session: Session, agent: Agent): Promise<Model>
  /** Instructions that every system prompt includes. */
  instructions: readonly string[]
  /** Returns additional instructions that apply to a file, nearest last. `file` is a path with links resolved. */
  instructionsNear?(file: string): Promise<FoundInstructions[]>
  /** The stored contents of changed files. */
  contents: ContentStore
  /** Records the file changes of a turn. */
  watchChanges(store: Pick<TurnChangesOptions, "save" | "note">): ChangeCapability
  /** Turns in progress, keyed by the root session's id. Changes by subagents belong to the turn of the root session. */
  turns: Map<string, ChangeCapability>
  /** Wraps the function that reads the files mentioned in a prompt, to record or replay its result. */
  attach?: (find: () => Promise<MentionedFiles>) => Promise<MentionedFiles>
  /** Returns the recorded results of calls. Set only when a recorded run is replayed. */
  recorded?: RecordedResults
  /** Applies tenant limits. Undefined if no tenant has limits. */
  tenants?: TenantGuard
  /** Limits the number of active runs. Undefined if the number is unlimited. */
  runSlots?: RunSlots
  /** Receives problems that do not stop the engine. */
  onProblem(message: string, error: unknown): void
  streamLimits: StreamLimits
  retry: RetryLimits
}

/** Limits for subagents. Except `depth`, each limit applies to one task. */
export interface SubagentLimits {
  /**
   * Maximum number of levels of subagents below a session that the user prompts. With 1, a subagent cannot start other
   * subagents.
   */
  depth: number
  /** Maximum time for one task in milliseconds, excluding time spent waiting for the user. */
  timeMs: number
  /** Maximum number of steps. The agent's own limit takes precedence if it is lower. */
  steps?: number
  /** Maximum number of tokens, excluding cache reads. */
  tokens?: number
}

/** Starts and finds subagent sessions. */
export interface SubagentServices {
  limits: SubagentLimits
  /**
   * Returns an agent that another agent can start. For any other name, throws `UsageError` with the available names.
   */
  agent(name: string): Agent
  /** Returns the names of the agents that the rules allow an agent to start. */
  startable(agent: string): string[]
  start(child: { parent: Session; agent: Agent; model: ModelRef; title: string }): Promise<SessionHandle>
  find(id: string): Promise<SessionHandle | undefined>
  /** Keeps a session's handle only while other code references it. */
  release(id: string): void
}
