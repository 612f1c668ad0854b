import type { Agent } from "../agent/agent.ts"
import type { Refusal } from "../event/events.ts"
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
import type { ToolState, ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
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
import type { Handover, OutputLimits } from "../tool/tool.ts"
import type { Questions } from "./questions.ts"

/**
 * The engine services that a tool call needs. `engine/` creates them once and closes them in reverse order.
 * `SessionEngine` extends this interface with the services that sessions need. Both describe the same object.
 */
export interface Engine {
  permission: Permission
  policies: Policies
  registry: Registry
  questions: Questions
  jobs: JobCapability
  /** Access to language servers. Undefined if they are disabled. */
  lsp?: LanguageCapability
  /** Formats changed files. Undefined if no formatter is enabled. */
  formatter?: FormatterService
  /** Calls the hooks of plugins. Undefined if no plugin is loaded. */
  plugins?: PluginHost
  /** Hides secrets in everything that a call returns, stores or announces. */
  mask: SecretMask
  /** Output limits for tools, which override the defaults. */
  outputLimits?: Partial<OutputLimits>
  /** The directory `<data>/truncate`, which contains one directory of spill files per session. */
  spillRoot: string
  /** Maximum size of a spill file in bytes. */
  spillBytes?: number
  /** `PATH` for the commands that tools run. */
  searchPath?: string
  /** Returns the sandbox for an agent's commands. */
  sandbox(agent: Agent, scope: Scope): SandboxCapability
  /** The sandbox that the permission engine takes into account when it decides about commands. Default: no sandbox. */
  scopeSandbox?: Scope["sandbox"]
  /**
   * Returns the directories that a session can read without a permission request. They contain the spill files of the
   * session and of its parent sessions, the plan, and the agent's skills.
   */
  ownDirectories(session: RunSession, agent: Agent): string[]
  /** Reports an error that escaped from a tool's code, such as an exception in a timer. */
  onEscape(tool: string, error: unknown): void
}

/** Provides the permission policy for an agent in a session. */
export interface Policies {
  /** Builds the policy from the current grants and parent sessions. */
  of(session: PolicySession, agent: Agent): Policy
  /** Reads the grants and parent sessions that `of` uses. Throws `OrphanError` if a parent session no longer exists. */
  load(session: PolicySession): Promise<void>
}

/**
 * The session fields that a policy depends on. A standalone call has the id of its caller. The id is empty if tools are
 * listed or rules are explained without a session.
 */
export type PolicySession = Pick<Session, "id" | "worktree" | "parentID">

/** The session fields that calls need. A standalone call has these fields, but no stored session. */
export type RunSession = Pick<Session, "id" | "directory" | "worktree" | "parentID">

/** One prompt, or one standalone call. */
export interface Run {
  readonly engine: Engine
  /** The session in its current state. */
  readonly session: RunSession
  /** The run's model. Undefined for a standalone call. */
  readonly model?: Model
  /** Files that the session has read and written. */
  readonly files: FileTracker
  /** Records file changes for undo. Undefined for a standalone call. */
  readonly changes?: ChangeCapability
  readonly todo?: TodoCapability
  readonly instructions?: InstructionCapability
  /** Path of the session's plan. Undefined if plan mode is off, for subagents and for standalone calls. */
  readonly planFile?: string
  /**
   * Sends a request to the session's model or, in a standalone call, to the client's model. Undefined without a model.
   */
  readonly sample?: Sample
  /** Shows the user a form from an MCP server. Defined only for a standalone call whose client can show forms. */
  readonly form?: AskForm
  /** Runs a subagent for a call. Undefined for a standalone call. */
  readonly spawn?: (request: SpawnRequest, call: CallReference) => Promise<SubagentResult>
  /** The `task` call that started this run. Every permission request and question in the run refers to this call. */
  readonly caller?: NonNullable<CallReference["parent"]>
  /** Values that the application passes to the tools. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** Signal that aborts when the run is interrupted, for example by the user or because the engine is closed. */
  readonly signal: AbortSignal
}

/** The agent that currently works on a run. Another agent replaces it when a tool hands the session over. */
export interface ActiveAgent {
  readonly run: Run
  readonly agent: Agent
  /** The scope against which permission requests from this agent are checked. */
  readonly scope: Scope
  readonly sandbox: SandboxCapability
  /**
   * The scope that determines which tools are offered. Contains the tools that cannot work in this run, with the
   * reasons.
   */
  readonly toolScope: ToolScope
  /** Tools that are not offered yet, but that the model can call by their exact names. */
  readonly deferred?: ReadonlyMap<string, OfferedTool>
  /** Search index for the deferred tools. Undefined if every tool is offered. */
  readonly catalogue?: readonly CatalogueEntry[]
}

/** The calls of one message: an answer from the model, a command from the user, or a standalone call. */
export interface Step {
  readonly active: ActiveAgent
  readonly messageID: string
  /** The tools that these calls may use, keyed by id. */
  readonly offered: ReadonlyMap<string, OfferedTool>
  readonly turn: Turn
  /** The reason why no more calls can run, as text for the model. Undefined if calls can run. */
  readonly closed?: string
  /** Whether another call made these calls. Such nested calls cannot call tools. */
  readonly nested?: boolean
  /** Values for the tools in this step, in addition to the run's values. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** Returns recorded results. Set when a recorded run is replayed. */
  readonly recorded?: RecordedResults
  /**
   * Receives the states of each call, in order. If the call may have effects once it is in this state, the promise
   * resolves only when the state is stored.
   */
  report(callID: string, state: ToolState): Promise<void>
  /**
   * Resolves when all states so far are stored and announced. Undefined if the promise of `report` already waits for
   * this.
   */
  stored?(): Promise<void>
  /** Stores nested calls before their first state is reported. Undefined if nested calls are not stored. */
  nest?(parentCallID: string, calls: readonly Call[]): Promise<void>
}

/**
 * Creates an agent's scope, sandbox and tool scope for a run. `unavailable` maps the id of each tool that cannot work
 * in this run to the reason.
 */
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
    sandbox: engine.scopeSandbox,
  }
  return {
    run,
    agent,
    scope,
    sandbox: engine.sandbox(agent, scope),
    toolScope: {
      model: run.model?.info.ref,
      agent: agent.name,
      mode: agent.mode,
      policy: policy(),
      unavailable,
    },
  }
}

/** A call as the model made it. */
export interface Call {
  callID: string
  /** Name of the tool as the model wrote it. The tool may not exist. */
  tool: string
  /** Arguments as the model wrote them. They may be invalid JSON. */
  raw: string
  /** Whether the output limit cut the answer off inside this call. */
  cut?: boolean
  /** Description of the repairs made when the call was read from text. */
  repaired?: string
}

/** The outcome of a call. `state` is the last state of the call. */
export interface CallOutcome {
  callID: string
  state: ToolStateCompleted | ToolStateError
}

/**
 * An earlier call in the turn, as the loop detector sees it. `result` is the output of a finished call that polls.
 */
export interface PastCall {
  tool: string
  input: string
  result?: string | undefined
}

/** State that all calls of one prompt share. */
export interface Turn {
  past: PastCall[]
  refused: Refusal[]
  /** Number of calls that were refused because they repeat earlier calls. The third refusal ends the run. */
  loopRefusals: number
  /** The agent that takes over the session after this step. Once a call sets it, no other call in the step starts. */
  handover?: Handover
}

/** Returns an empty turn. */
export function newTurn(): Turn {
  return { past: [], refused: [], loopRefusals: 0 }
}

/** Returns the recorded result of a call. */
export type RecordedResults = (call: {
  tool: string
  input: Readonly<Record<string, unknown>>
}) => CallOutcome["state"]
