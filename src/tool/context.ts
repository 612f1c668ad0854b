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

/** Everything a tool can use. Optional capabilities are absent if the host does not provide them. */
export interface ToolContext {
  sessionID: string
  messageID: string
  callID?: string
  /** Name of the calling agent. */
  agent: string
  model?: ModelRef
  /** Fires on the user's interrupt, the tool's timeout and the end of the run. */
  abort: AbortSignal
  /** Base of relative paths. Absolute. */
  directory: string
  /** The project's root. Absolute. Paths outside ask for `external_directory`. */
  worktree: string
  extra?: Record<string, unknown>
  /** Shows progress. Cheap to call often: reports are joined before they are stored. May be awaited. */
  metadata(update: MetadataUpdate): Promise<void>
  /** Resolves when allowed; throws `PermissionError` when refused. Change nothing before it resolves. */
  ask(request: AskRequest): Promise<void>
  /** Returns the verdict of the rules on reading a file, without asking. Searches hide files that are not allowed. */
  mayRead?(path: string): Promise<Action>
  /** Opens a file for output that is too long to keep in memory. */
  spill: SpillOpener
  files: FileTracker
  /** Absent without a session: there is no turn to undo. */
  changes?: ChangeCapability
  todo?: TodoCapability
  jobs?: JobCapability
  /** Absent: commands run without a sandbox. */
  sandbox?: SandboxCapability
  /** Absent if no subagent can start: without a session, and at the depth limit. */
  spawn?: Spawn
  /** Absent if no user can answer. */
  question?: AskUser
  /** For MCP servers. Absent if only questions can be shown. */
  form?: AskForm
  /** For MCP servers; ask for `mcp_sampling` first. Absent without a model. */
  sample?: Sample
  /** Absent without a session, in a subagent's session, and if plan mode is off. */
  plan?: PlanCapability
  /** Absent without a session, and if no instructions are loaded. */
  instructions?: InstructionCapability
  /** Absent if language servers are off. Ask for permission before use. */
  lsp?: LanguageCapability
  /** Absent if no formatter is configured. Requires the file's lock. */
  formatter?: FormatterService
  /** Tools that `tool_search` searches. Absent if every tool is offered. */
  catalogue?: readonly CatalogueEntry[]
  /** Absent in a call that another call made. */
  call?: CallTools
}

/** A permission request of a tool. */
export interface AskRequest {
  /** Permission type: `read`, `edit`, `bash`, a tool's own id… */
  permission: string
  /** Everything the call would do. One deny denies all, otherwise one ask asks for all. */
  patterns: string[]
  /** Patterns that an "always" reply allows from then on. */
  always?: string[]
  /**
   * Files and directories the call touches, absolute or relative to the directory. The engine resolves them and asks
   * for `external_directory` outside the worktree. For `read` and `edit` the patterns are the paths.
   */
  paths?: string[]
  /** Details the user needs to decide: `diff`, `command`, `filePath`… */
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

/** Background processes of all sessions. Jobs end with the process that started them. */
export interface JobCapability {
  list(): JobInfo[]
  get(id: string): Job | undefined
  add(job: Job): void
}

/** A background job, created by `bash` and managed by the `job` tool. */
export interface Job {
  info(): JobInfo
  /** Returns the output so far: beginning and end if it is long, with the path of the full text. */
  output(): { text: string; truncated: boolean; outputPath?: string }
  /** Sends SIGTERM to the process group and SIGKILL after a grace period; resolves when the group is gone. */
  kill(): Promise<void>
  /** Undefined when the input is closed or the job has ended. */
  readonly input?: JobInput | undefined
}

/** State of a process that outlived its shell. Times in milliseconds since the epoch. */
export interface JobInfo {
  id: string
  /** Session whose call started the job. No other session can see or end it. */
  sessionID: string
  command: string
  status: "running" | "exited" | "killed"
  startedAt: number
  endedAt?: number
  /** Bytes written so far. */
  bytes: number
}

/** Standard input of a job. */
export interface JobInput {
  /** Directory in which the command was started. Absolute. */
  workdir: string
  /** Resolves when the pipe has accepted the text; waits while the pipe is full. Rejects when the pipe is closed. */
  write(text: string): Promise<void>
  /** Closes the input. */
  end(): void
}

/** Confines commands as the session's rules require. */
export interface SandboxCapability {
  /** Returns true if commands run in a sandbox. */
  active(): Promise<boolean>
  /**
   * Returns undefined if commands run without a sandbox. `text` is the shell's input. Throws `SandboxError` if a
   * sandbox is required and none works.
   */
  confine(command: Command & { text: string }): Promise<ConfinedCommand | undefined>
}

/**
 * Runs a subagent to its end. A subagent has at most the permissions of its parent session. Throws for an unusable agent
 * or session; what happens to the subagent itself is a result.
 */
export type Spawn = (request: SpawnRequest) => Promise<SubagentResult>

/** The task of a subagent. */
export interface SpawnRequest {
  /** Name of the agent. */
  agent: string
  prompt: string
  /** The task in a few words, for the user. */
  description: string
  /** Continues this child session instead of starting a new one. */
  sessionID?: string
  /** Ends the subagent and everything it started. */
  signal: AbortSignal
  /** Called when calls of the subagent start and end. */
  onProgress(progress: SubagentProgress): void
}

/** Progress of a subagent. */
export interface SubagentProgress {
  sessionID: string
  /** Number of calls so far. */
  count: number
  /** The last calls, oldest first. */
  calls: { tool: string; title: string; status: "pending" | "running" | "completed" | "error" }[]
}

/** Result of a subagent. `limit`: a budget of time, steps or tokens ran out, and `text` is the partial result. */
export interface SubagentResult {
  sessionID: string
  status: "completed" | "failed" | "limit" | "interrupted"
  /** The last message; may be empty. */
  text: string
  /** Why the subagent did not complete. */
  cause?: string
  /** Number of calls. */
  count: number
  durationMs: number
}

/**
 * Asks the user and waits without a time limit. The document is shown first. Resolves with undefined if the user
 * dismisses the questions. Throws when the call is aborted, or when `stop` fires and withdraws the questions.
 */
export type AskUser = (
  questions: Question[],
  document?: QuestionDocument,
  stop?: AbortSignal,
) => Promise<QuestionAnswers | undefined>

/**
 * Shows the user a form. `requestedSchema` is the JSON Schema of MCP forms. Rejects if the form cannot be shown and when
 * the signal fires.
 */
export type AskForm = (
  form: { message: string; requestedSchema: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
) => Promise<FormAnswer>

/** The user's reply to a form. `content`, by field name, comes with `accept`. */
export interface FormAnswer {
  action: "accept" | "decline" | "cancel"
  content?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Asks the session's model for one answer, without tools. Throws `UsageError` if the run's budget does not allow it, and
 * the model's errors.
 */
export type Sample = (request: SampleRequest) => Promise<SampleResult>

/** A request to the session's model outside the conversation. */
export interface SampleRequest {
  system?: string
  messages: readonly SampleMessage[]
  /** Limit of the answer, in tokens. */
  maxOutputTokens: number
  temperature?: number
  signal: AbortSignal
}

/** A message of a {@link SampleRequest}. */
export interface SampleMessage {
  role: "user" | "assistant"
  text: string
}

/** The model's answer. `cut`: it reached the limit. */
export interface SampleResult {
  text: string
  /** The model's own name. */
  model: string
  cut: boolean
  /** Tokens and US dollars of the session's model. Absent if another model answered. */
  spent?: { tokens: Tokens; cost: number }
}

/** Plan mode of the session. */
export interface PlanCapability {
  /** Path of the plan file. Absolute. The file may not exist. */
  file: string
}

/** Instruction files in directories below the project's root. */
export interface InstructionCapability {
  /**
   * Returns the instructions of the directories down to the file (links resolved) that the session has not received yet,
   * the nearest last.
   */
  near(file: string): Promise<FoundInstructions[]>
}

/** Instructions for the files below a directory. */
export interface FoundInstructions {
  /** Absolute path with links resolved. */
  path: string
  /** Starts with its source. */
  text: string
}

/** Language servers, for as long as the engine runs. */
export type LanguageCapability = Omit<LanguageService, "close">

/** A tool of the session that the model is not offered yet. */
export interface CatalogueEntry {
  id: string
  description: string
  /** Parameter names. */
  parameters: readonly string[]
}

/**
 * Calls other tools as the model would: each call is checked, permitted, scheduled and recorded separately. Results keep
 * the order of the calls and include failures. The called tools cannot call further tools.
 */
export type CallTools = (
  calls: readonly { tool: string; input: Record<string, unknown> }[],
) => Promise<CallResult[]>

/** Result of a call that a tool made. */
export interface CallResult {
  callID: string
  tool: string
  state: ToolStateCompleted | ToolStateError
}
