import type { Agent } from "../agent/agent.ts"
import type { FileTracker } from "../files/file-tracker.ts"
import type { ChangeCapability } from "../files/turn-changes.ts"
import type { FormatterService } from "../formatter/service.ts"
import type { Model } from "../model/model.ts"
import type { Permission } from "../permission/permission.ts"
import type { Policy } from "../permission/policy.ts"
import type { Scope } from "../permission/request.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { ToolScope } from "../registry/registered-tool.ts"
import type { Registry } from "../registry/registry.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { ToolState } from "../schema/tool-state.ts"
import type {
  AskForm,
  CatalogueEntry,
  InstructionCapability,
  JobCapability,
  LanguageCapability,
  Sample,
  SandboxCapability,
  SpawnRequest,
  SubagentResult,
  TodoCapability,
} from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { OutputLimits } from "../tool/tool.ts"
import type { Call, RecordedResults, Turn } from "./call.ts"
import type { Questions } from "./questions.ts"

/**
 * The services of one engine that a tool call needs. `engine/` creates them once and closes them in reverse order. `session/session-engine.ts` adds
 * what sessions need: it is the same object, with more of it visible.
 */
export interface Engine {
  permission: Permission
  policies: Policies
  registry: Registry
  questions: Questions
  jobs: JobCapability
  /** Undefined when language servers are off. */
  lsp?: LanguageCapability
  /** Undefined when no formatter is on. */
  formatter?: FormatterService
  /** Undefined when no plugin is loaded. */
  plugins?: PluginHost
  /** Hides secrets in everything that a call leaves behind. */
  mask?: SecretMask
  /** Limits for the output of tools, over the defaults. */
  outputLimits?: Partial<OutputLimits>
  /** `<data>/truncate`: contains one directory of spill files per session. */
  spillRoot: string
  /** Maximum size of a spill file in bytes. */
  spillBytes?: number
  /** `PATH` of the commands that run. */
  searchPath?: string
  /** Returns the sandbox for the commands of an agent. */
  sandbox(agent: Agent, scope: Scope): SandboxCapability
  /** Returns the directories that a session reads without a question: its spill files, its plan, its agent's skills. */
  ownDirectories(session: RunSession, agent: Agent): string[]
  /** Reports an error that a tool's code let escape. */
  onEscape(tool: string, error: unknown): void
}

/** The rules that bind agents, per session. */
export interface Policies {
  /** Builds the policy from the current grants and parent sessions. */
  of(session: PolicySession, agent: Agent): Policy
  /** Reads the grants and parent sessions that `of` uses. Throws `OrphanError`. */
  load(session: PolicySession): Promise<void>
}

/** The part of a session that its policy depends on. Without a session, the id is empty or the caller's. */
export type PolicySession = Pick<Session, "id" | "worktree" | "parentID">

/** The part of a session that its calls need. A standalone call has an id and directories, but no stored session. */
export type RunSession = Pick<Session, "id" | "directory" | "worktree" | "parentID">

/** One prompt, or one standalone call. */
export interface Run {
  readonly engine: Engine
  /** The session as it is now. */
  readonly session: RunSession
  /** Undefined for a standalone call. */
  readonly model?: Model
  /** The files that the session has read and written. */
  readonly files: FileTracker
  /** Records file changes for undo. Undefined for a standalone call. */
  readonly changes?: ChangeCapability
  readonly todo?: TodoCapability
  readonly instructions?: InstructionCapability
  /** Path of the session's plan. Undefined without plan mode. */
  readonly planFile?: string
  /** Asks the session's model. Undefined without a model. */
  readonly sample?: Sample
  /** Shows the user a form of an MCP server. Undefined when only questions can be shown. */
  readonly form?: AskForm
  /** Runs a subagent for a call. Undefined for a standalone call. */
  readonly spawn?: (request: SpawnRequest, call: CallReference) => Promise<SubagentResult>
  /** The `task` call that this run works for. Every request names it. */
  readonly caller?: NonNullable<CallReference["parent"]>
  /** Fires on the user's interrupt and at the end of the run. */
  readonly signal: AbortSignal
}

/** An agent at work on a run. A run changes its agent when a tool hands the session over. */
export interface ActiveAgent {
  readonly run: Run
  readonly agent: Agent
  /** Permission requests of this agent are checked against this scope. */
  readonly scope: Scope
  readonly sandbox: SandboxCapability
  /** Selects the tools that the registry offers. Includes the tools that cannot work here, with the reasons. */
  readonly toolScope: ToolScope
  /** Tools that are not offered yet, but can be called by their exact names. */
  readonly deferred?: ReadonlyMap<string, OfferedTool>
  /** Search index over the deferred tools. Undefined when every tool is offered. */
  readonly catalogue?: readonly CatalogueEntry[]
}

/** The calls of one message: one answer of the model, one command of the user, or one standalone call. */
export interface Step {
  readonly active: ActiveAgent
  readonly messageID: string
  /** The tools that these calls may use, by id. */
  readonly offered: ReadonlyMap<string, OfferedTool>
  readonly turn: Turn
  /** Set when no call may run any more. Tells the model why. */
  readonly closed?: string
  /** True for the calls that a call makes. They make no further calls. */
  readonly nested?: boolean
  /** Returns recorded results. Set when a recorded run is replayed. */
  readonly recorded?: RecordedResults
  /**
   * Receives every state of every call, in order. A state that lets the call act is stored when the promise resolves.
   */
  report(callID: string, state: ToolState): Promise<void>
  /** Resolves when all states so far are stored and announced. Undefined when `report` waits for each. */
  stored?(): Promise<void>
  /** Stores the calls that a call makes, before their first state. Undefined when they are not stored. */
  nest?(parentCallID: string, calls: readonly Call[]): Promise<void>
}

/** Assembles an agent for a run. `unavailable`: tools that cannot work in this run, with the reasons. */
export function activateAgent(
  run: Run,
  agent: Agent,
  unavailable: Readonly<Record<string, string>>,
): ActiveAgent {
  const { engine, session } = run
  const policy = () => engine.policies.of(run.session, agent)
  const scope: Scope = {
    directory: session.directory,
    worktree: session.worktree,
    policy,
    own: engine.ownDirectories(session, agent),
    searchPath: engine.searchPath,
  }
  return {
    run,
    agent,
    scope,
    sandbox: engine.sandbox(agent, scope),
    toolScope: { model: run.model?.info.ref, agent: agent.name, policy: policy(), unavailable },
  }
}
