import type { Usage } from "../event/events.ts"
import type { FileTracker } from "../files/file-tracker.ts"
import type { ChangeCapability } from "../files/turn-changes.ts"
import type { FormatterService } from "../formatter/service.ts"
import type { LanguageService } from "../lsp/service.ts"
import type { Command, ConfinedCommand } from "../sandbox/bounds.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Tokens } from "../schema/part.ts"
import type { Action } from "../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionDocument } from "../schema/question.ts"
import type { Todo } from "../schema/todo.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type { SpillOpener } from "./spill.ts"

/**
 * Everything that a tool can use. Optional capabilities are absent if the host does not provide them. An engine
 * provides `spawn`, `instructions`, `lsp`, `formatter` and `catalogue` only to built-in tools, and `form` and `sample`
 * only to tools from MCP servers.
 */
export interface ToolContext {
  sessionID: string
  messageID: string
  callID?: string
  /** Name of the calling agent. */
  agent: string
  model?: ModelRef
  /**
   * Signal that aborts if the run is interrupted, for example by the user, by a time limit or because the engine
   * closes, if the tool's timeout expires, or if the database is removed. Does not abort when the call or the run ends
   * by itself.
   */
  abort: AbortSignal
  /** Absolute path of the working directory, the base of relative paths. */
  directory: string
  /** Absolute path of the project root. Access outside it requires the `external_directory` permission. */
  worktree: string
  /**
   * Values that the application passed with the prompt or the call. In a call that attaches a file for the user,
   * `bypassCwdCheck` is true. Built-in tools ignore `bypassCwdCheck`, because the rules decide which files they may
   * read.
   */
  extra?: Readonly<Record<string, unknown>>
  /**
   * Reports progress. Frequent calls are cheap, because reports are merged before they are stored. Awaiting the result
   * is optional.
   */
  metadata(update: MetadataUpdate): Promise<void>
  /**
   * Resolves if permission is granted, and rejects with `PermissionError` if it is refused. A tool must not change
   * anything before the promise resolves.
   */
  ask(request: AskRequest): Promise<void>
  /**
   * Returns the action that the rules specify for reading a file, without asking the user. Search tools omit files that
   * the rules do not allow to be read.
   */
  mayRead?(path: string): Promise<Action>
  /** Opens a file for output that is too long to keep in memory. */
  spill: SpillOpener
  files: FileTracker
  /** Records file changes for undo. Absent without a session, because there is no turn to undo. */
  changes?: ChangeCapability
  todo?: TodoCapability
  jobs?: JobCapability
  /** Runs commands in a sandbox. If absent, commands run without a sandbox. */
  sandbox?: SandboxCapability
  /** Runs a subagent. Absent without a session and at the maximum subagent depth. */
  spawn?: Spawn
  /** Asks the user questions. Absent if no user can answer. */
  question?: AskUser
  /** Shows forms from MCP servers. Absent if the client can only show questions. */
  form?: AskForm
  /**
   * Sends requests from MCP servers to the model. Request the permission `mcp_sampling` first. Absent without a model.
   */
  sample?: Sample
  /**
   * The session's plan, for plan mode. Absent without a session, in a subagent's session, or if plan mode is disabled.
   */
  plan?: PlanCapability
  /** Returns the instructions that apply to a file. Absent without a session, or if the host loads no instructions. */
  instructions?: InstructionCapability
  /** Queries language servers. Absent if language servers are disabled. Request permission before each query. */
  lsp?: LanguageCapability
  /** Formats changed files. Absent if no formatter is configured. The caller must hold the file's lock. */
  formatter?: FormatterService
  /** Tools that `tool_search` searches. Absent if every tool is offered. */
  catalogue?: readonly CatalogueEntry[]
  /** Calls other tools. Absent if another tool made this call, because a nested call cannot call tools. */
  call?: CallTools
}

/** A tool's request for permission. */
export interface AskRequest {
  /** Name of the permission, such as `read`, `edit`, `bash` or a tool id. */
  permission: string
  /**
   * Patterns that describe everything that the call would do. If the rules deny one of the patterns, the request is
   * denied. Otherwise, the user is asked about the patterns that need permission, if any.
   */
  patterns: string[]
  /** Patterns that are allowed in the future if the user replies "always". */
  always?: string[]
  /**
   * Files and directories that the call reads or changes, as absolute paths or relative to `directory`. The engine
   * resolves these paths and asks for `external_directory` if a path is outside the worktree. Not needed for `read` and
   * `edit`, whose patterns are paths that are checked in the same way.
   */
  paths?: string[]
  /** Details that help the user decide, such as `diff`, `command` or `filePath`. */
  metadata?: Record<string, unknown>
}

/** A progress report. Unknown keys, such as `progress`, are merged into the metadata. */
export interface MetadataUpdate {
  title?: string
  metadata?: Record<string, unknown>
  [key: string]: unknown
}

/** The session's to-do list. `write` replaces the whole list. */
export interface TodoCapability {
  read(): Promise<Todo[]>
  write(todos: Todo[]): Promise<void>
}

/** Access to the background jobs in all of the engine's sessions. The jobs end when the engine closes. */
export interface JobCapability {
  list(): JobInfo[]
  get(id: string): Job | undefined
  add(job: Job): void
}

/** A background job, created by `bash` and managed by the `job` tool. */
export interface Job {
  info(): JobInfo
  /** Returns the output so far. If the output is long, returns its beginning and end, and the path of the full text. */
  output(): { text: string; truncated: boolean; outputPath?: string }
  /** Sends SIGTERM to the process group, and SIGKILL after a grace period. Resolves when the group has ended. */
  kill(): Promise<void>
  /** The job's standard input. Undefined if the input is closed or the job has ended. */
  readonly input?: JobInput | undefined
}

/** State of a background job. Times are in milliseconds since the epoch. */
export interface JobInfo {
  id: string
  /** Session whose call started the job. In other sessions, the `job` tool does not show the job and cannot end it. */
  sessionID: string
  command: string
  status: "running" | "exited" | "killed"
  startedAt: number
  endedAt?: number
  /** Number of bytes of output so far. */
  bytes: number
}

/** Standard input of a job. */
export interface JobInput {
  /** Absolute path of the directory in which the command was started. */
  workdir: string
  /** Resolves when the pipe has accepted the text. Waits while the pipe is full. Rejects if the pipe is closed. */
  write(text: string): Promise<void>
  /** Closes the input. */
  end(): void
}

/** Confines commands as the session's rules require. */
export interface SandboxCapability {
  /** Returns true if commands run in a sandbox. */
  active(): Promise<boolean>
  /**
   * Returns a command that runs in the sandbox, or undefined if commands run without a sandbox. `text` is the shell
   * command. Rejects with `SandboxError` if a sandbox is required but not available.
   */
  confine(command: Command & { text: string }): Promise<SandboxedCommand | undefined>
}

/** A command that runs in the sandbox of an agent. */
export interface SandboxedCommand extends ConfinedCommand {
  /**
   * Call this after all of the command's processes have ended. Moves files that the command created although a rule
   * denies them out of the project. Returns a sentence that names them, or undefined if no file was moved. Idempotent.
   */
  ended(): string | undefined
}

/**
 * Runs a subagent to completion. A subagent has at most the permissions of its parent session. Rejects if the agent or the
 * child session cannot be used. If the subagent itself fails, resolves with the failure.
 */
export type Spawn = (request: SpawnRequest) => Promise<SubagentResult>

/** A task for a subagent. */
export interface SpawnRequest {
  /** Name of the agent. */
  agent: string
  prompt: string
  /** Short description of the task, for the user. */
  description: string
  /** Id of a child session to continue instead of starting a new one. */
  sessionID?: string
  /** Signal that stops the subagent and everything it started. */
  signal: AbortSignal
  /** Called when the subagent starts, and when the title or status of one of its tool calls changes. */
  onProgress(progress: SubagentProgress): void
}

/** Progress of a subagent. */
export interface SubagentProgress {
  sessionID: string
  /** Number of tool calls so far. */
  count: number
  /** The latest tool calls, oldest first. */
  calls: { tool: string; title: string; status: "pending" | "running" | "completed" | "error" }[]
  /** Usage of the subagent and its own subagents so far. */
  usage: Usage
}

/**
 * Result of a subagent. `incomplete` and `limit` have the same meaning as in `RunStatus`. `text` is then a partial
 * result.
 */
export interface SubagentResult {
  sessionID: string
  status: "completed" | "incomplete" | "failed" | "limit" | "interrupted"
  /** The subagent's last message. May be empty. */
  text: string
  /** Reason why the subagent did not complete. */
  cause?: string
  /** Number of tool calls. */
  count: number
  /** Usage of the subagent and its own subagents. */
  usage: Usage
  durationMs: number
}

/**
 * Shows the document, asks the user and waits without a time limit. Resolves with undefined if the user dismisses the
 * questions. If the call is aborted or `stop` aborts, withdraws the questions and rejects.
 */
export type AskUser = (
  questions: Question[],
  document?: QuestionDocument,
  stop?: AbortSignal,
) => Promise<QuestionAnswers | undefined>

/**
 * Shows the user a form. `requestedSchema` is the JSON Schema of an MCP form. Rejects if the form cannot be shown or
 * the signal aborts.
 */
export type AskForm = (
  form: { message: string; requestedSchema: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
) => Promise<FormAnswer>

/** The user's reply to a form. If `action` is `accept`, `content` contains the values, keyed by field name. */
export interface FormAnswer {
  action: "accept" | "decline" | "cancel"
  content?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Requests one answer from the session's model, without tools. Rejects with `UsageError` if the run's budget does not
 * allow the request, and with the model's error if the model fails.
 */
export type Sample = (request: SampleRequest) => Promise<SampleResult>

/** A request to the session's model outside the conversation. */
export interface SampleRequest {
  system?: string
  messages: readonly SampleMessage[]
  /** Maximum length of the answer, in tokens. */
  maxOutputTokens: number
  temperature?: number
  signal: AbortSignal
}

/** A message in a {@link SampleRequest}. */
export interface SampleMessage {
  role: "user" | "assistant"
  text: string
}

/** The model's answer. `cut` is true if the answer reached the token limit. */
export interface SampleResult {
  text: string
  /** Id of the model that answered. */
  model: string
  cut: boolean
  /** Tokens that the session's model used, and their cost in US dollars. Absent if another model answered. */
  spent?: { tokens: Tokens; cost: number }
}

/** Access to the session's plan mode. */
export interface PlanCapability {
  /** Absolute path of the plan file, which may not exist yet. */
  file: string
}

/** Access to instruction files in directories below the project root. */
export interface InstructionCapability {
  /**
   * Returns the instructions that the session has not received yet, from the directories between the project root and
   * the file, nearest last. `file` is a path with links resolved.
   */
  near(file: string): Promise<FoundInstructions[]>
}

/** Instructions for the files below a directory. */
export interface FoundInstructions {
  /** Absolute path of the instruction file, with links resolved. */
  path: string
  /** Text of the instructions. Begins with a line that states their source. */
  text: string
}

/** Access to the language servers. Each server runs from its first use until the engine closes. */
export type LanguageCapability = Omit<LanguageService, "close">

/** A tool in the session that is not offered to the model yet. */
export interface CatalogueEntry {
  id: string
  description: string
  /** Names of the parameters. */
  parameters: readonly string[]
}

/**
 * Calls other tools, in the same way as the model. Each call is checked, needs permission, and is scheduled and
 * recorded separately. The results are in the order of the calls, and include failures. The called tools cannot call
 * other tools.
 */
export type CallTools = (
  calls: readonly { tool: string; input: Record<string, unknown> }[],
) => Promise<CallResult[]>

/** Result of a tool call that another tool made. */
export interface CallResult {
  callID: string
  tool: string
  state: ToolStateCompleted | ToolStateError
}
