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
import type { NoteTemporary } from "./temporary-book.ts"

/** What a tool asks leave for. */
export interface AskRequest {
  /** The permission's type: `read`, `edit`, `bash`, a tool's own id… */
  permission: string
  /** Every thing the call would do. One deny denies all, else one ask asks for all. */
  patterns: string[]
  /** The patterns that an "always" of the person would allow from then on. */
  always?: string[]
  /**
   * Files and directories that the call touches, absolute or relative to the directory. The engine resolves them and
   * asks `external_directory` for what lies outside the worktree. For `read` and `edit` the patterns are the paths.
   */
  paths?: string[]
  /** What the person has to see to decide: `diff`, `command`, `filePath`… */
  metadata?: Record<string, unknown>
}

/** A report while the tool works. Keys it does not know, such as `progress`, merge into the metadata. */
export interface MetadataUpdate {
  title?: string
  metadata?: Record<string, unknown>
  [key: string]: unknown
}

/** The session's to-do list. `write` replaces it whole. */
export interface TodoCapability {
  read(): Promise<Todo[]>
  write(todos: Todo[]): Promise<void>
}

/**
 * What a file's bytes were when this session last saw them. `size` in bytes; `digest` is the sha256 in hex, absent for
 * files too large to hash, where `mtimeMs` and `size` decide.
 */
export interface FileStamp {
  size: number
  mtimeMs: number
  digest?: string
}

/** Which files this session has read or written, by resolved absolute path, and with what bytes. */
export interface FileLedger {
  seen(path: string): FileStamp | undefined
  record(path: string, stamp: FileStamp): void
  /** Runs `work` alone among all calls of the session that name one of the paths; two on one file never interleave. */
  lock<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /**
   * Runs the last step of a change alone among all sessions of the engine: to look whether the files are still what was
   * asked about, to write them and to format them. Nobody is asked in it. It is short but for formatters, which may take
   * seconds (`builtin/file/format-file.ts`): other sessions wait so long for these files, and for no others.
   */
  commit<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /** Is told of each file of ours that will stand among the person's own while a change is made. */
  note: NoteTemporary
}

/** What stands at a resolved path before or after a change. No bytes: no file. */
export interface FileContent {
  path: string
  bytes: Uint8Array | undefined
}

/** Keeps what files were before a call changed them, so that the person can undo the turn. */
export interface ChangeCapability {
  /**
   * Runs a change whose bytes are known, under the locks of its files. What was there before is safe when `work`
   * starts. Rejects as `work` does.
   */
  files<T>(
    change: { before: readonly FileContent[]; after: readonly FileContent[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Runs a command that may change any file of the worktree, and looks for what it changed. Rejects as `work` does. */
  command<T>(text: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

/** A process that outlived the shell which started it. Times in milliseconds since the epoch. */
export interface JobInfo {
  id: string
  /** The session whose call started it: no other one may see or end it. */
  sessionID: string
  command: string
  status: "running" | "exited" | "killed"
  startedAt: number
  endedAt?: number
  /** Bytes it has written so far. */
  bytes: number
}

/** Background processes of all sessions. Jobs end with the process that started them. */
export interface JobCapability {
  list(): JobInfo[]
  get(id: string): Job | undefined
  add(job: Job): void
}

/** What a job reads. */
export interface JobInput {
  /** Where the job's command was started. Absolute. */
  workdir: string
  /** Resolves when the job's pipe has taken the text, which waits while it is full. Rejects where nobody reads any more. */
  write(text: string): Promise<void>
  /** Nothing more comes. */
  end(): void
}

/** One background job, as `bash` hands it over and the `job` tool uses it. */
export interface Job {
  info(): JobInfo
  /** The output so far: head and tail where it is long, with the path of the whole. */
  output(): { text: string; truncated: boolean; outputPath?: string }
  /** SIGTERM to the whole group, SIGKILL after the grace period; resolves when it is gone. */
  kill(): Promise<void>
  /** Undefined where its input is closed, or it has ended. */
  readonly input?: JobInput | undefined
}

/** Puts the bounds around a command that follow from the session's rules. */
export interface SandboxCapability {
  /** True where commands run in a sandbox. */
  active(): Promise<boolean>
  /**
   * Undefined where commands run as they are. `text` is what the shell is given. Throws `SandboxError` where a sandbox is
   * required and none works.
   */
  confine(command: Command & { text: string }): Promise<ConfinedCommand | undefined>
}

/** What a subagent is given to do. */
export interface SpawnRequest {
  /** Name of the agent that works. */
  agent: string
  /** All that it is told. */
  prompt: string
  /** The work in a few words, for people. */
  description: string
  /** Goes on with this child session instead of beginning one. */
  sessionID?: string
  /** Fires to end it, and everything it started. */
  signal: AbortSignal
  /** Hears of the subagent's calls as they begin and end. */
  onProgress(progress: SubagentProgress): void
}

/** What a subagent is doing. */
export interface SubagentProgress {
  sessionID: string
  /** Its calls so far. */
  count: number
  /** The last of them, oldest first, as they stand. */
  calls: { tool: string; title: string; status: "pending" | "running" | "completed" | "error" }[]
}

/** How a subagent ended. `limit`: a budget of time, steps or tokens ran out, and `text` is what it had by then. */
export interface SubagentResult {
  sessionID: string
  status: "completed" | "failed" | "limit" | "interrupted"
  /** Its last words; empty where it said nothing. */
  text: string
  /** Why it did not complete. */
  cause?: string
  /** Calls that it made. */
  count: number
  durationMs: number
}

/**
 * Runs a subagent to its end. It may never do what the session that starts it may not. Throws for an agent or session
 * that cannot be used; everything that happens to the subagent itself is a result.
 */
export type Spawn = (request: SpawnRequest) => Promise<SubagentResult>

/**
 * Asks the person and waits, without a limit of time. They are shown the document first. Undefined: they dismissed it.
 * Throws when the call is aborted, or when `stop` fires: the question is then taken back.
 */
export type AskPerson = (
  questions: Question[],
  document?: QuestionDocument,
  stop?: AbortSignal,
) => Promise<QuestionAnswers | undefined>

/** What the person made of a form. `content` comes with `accept`, by the names of the fields. */
export interface FormAnswer {
  action: "accept" | "decline" | "cancel"
  content?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Shows the person a form as it is: `requestedSchema` is JSON Schema as MCP has it for forms. Rejects where the form
 * cannot be shown, and when the signal fires.
 */
export type AskForm = (
  form: { message: string; requestedSchema: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
) => Promise<FormAnswer>

/** A message of a {@link SampleRequest}. */
export interface SampleMessage {
  role: "user" | "assistant"
  text: string
}

/** What the session's model is asked beside the session. */
export interface SampleRequest {
  system?: string
  messages: readonly SampleMessage[]
  /** Of the answer, in tokens. */
  maxOutputTokens: number
  temperature?: number
  signal: AbortSignal
}

/** What it said. `cut`: the answer was longer. */
export interface SampleResult {
  text: string
  /** The model's own name. */
  model: string
  cut: boolean
  /** What it took of the session's model, in tokens and US dollars. Absent where it was somebody else's. */
  spent?: { tokens: Tokens; cost: number }
}

/**
 * Asks the session's model for one answer, without tools. Throws `UsageError` where the run has no room for it, and what
 * asking the model throws.
 */
export type Sample = (request: SampleRequest) => Promise<SampleResult>

/** Where the session keeps its plan. */
export interface PlanCapability {
  /** Absolute. It need not exist. */
  file: string
}

/** A text of instructions that holds for the files below a directory. */
export interface FoundInstructions {
  /** Absolute, with every link followed. */
  path: string
  /** Headed by where it is from. */
  text: string
}

/** Instructions that lie deeper in the project than those the model has from the start. */
export interface InstructionCapability {
  /** Those of the directories down to the file (links followed) that the session was not given yet, the nearest last. */
  near(file: string): Promise<FoundInstructions[]>
}

/** A tool that the session has and the model is not offered yet. */
export interface CatalogueEntry {
  id: string
  description: string
  /** Names of its parameters. */
  parameters: readonly string[]
}

/** What became of a call that a tool made. */
export interface CallResult {
  callID: string
  tool: string
  state: ToolStateCompleted | ToolStateError
}

/**
 * Calls other tools as the model would: each call is checked, asked for, ordered and recorded by itself. Results come
 * in the order of the calls, failed ones among them. The tools called cannot call further.
 */
export type CallTools = (
  calls: readonly { tool: string; input: Record<string, unknown> }[],
) => Promise<CallResult[]>

/** Language servers, for as long as the engine runs. */
export type LanguageCapability = Omit<LanguageService, "close">

/** The tool's whole world: what it is not given here it does not have. */
export interface ToolContext {
  sessionID: string
  messageID: string
  callID?: string
  /** Name of the agent that calls. */
  agent: string
  model?: ModelRef
  /** Fires on the person's interrupt, the tool's timeout and the end of the run. */
  abort: AbortSignal
  /** Where relative paths start. Absolute. */
  directory: string
  /** The project's root. Absolute. What lies outside asks `external_directory`. */
  worktree: string
  extra?: Record<string, unknown>
  /** Shows progress. Cheap to call often: reports are joined before they are stored. May be awaited. */
  metadata(update: MetadataUpdate): Promise<void>
  /** Resolves when allowed; throws `PermissionError` when refused. Nothing may be touched before it resolves. */
  ask(request: AskRequest): Promise<void>
  /** Whether `read` would be let near a file, without asking anybody: what a search finds in others is not to be shown. */
  mayRead?(path: string): Promise<Action>
  /** Opens a place on disk for output that is too long to keep. */
  spill: SpillOpener
  files: FileLedger
  /** Absent without a session: there is no turn to undo. */
  changes?: ChangeCapability
  /** Capabilities that only some hosts provide. */
  todo?: TodoCapability
  jobs?: JobCapability
  /** Absent: commands run as they are. */
  sandbox?: SandboxCapability
  /** Absent where no subagents can be started: without a session, and at the limit of depth. */
  spawn?: Spawn
  /** Absent where nobody could answer. */
  question?: AskPerson
  /** For MCP servers. Absent where only questions can be shown. */
  form?: AskForm
  /** For MCP servers, whose requests ask `mcp_sampling` first. Absent where there is no model to ask. */
  sample?: Sample
  /** Absent where there is no plan mode: without a session, in a subagent's, and where it is switched off. */
  plan?: PlanCapability
  /** Absent without a session, and where nobody looks for instructions. */
  instructions?: InstructionCapability
  /** Absent where language servers are switched off. Whoever asks them asks for leave first. */
  lsp?: LanguageCapability
  /** Absent where no formatter is switched on. Only for a tool that holds the file's lock. */
  formatter?: FormatterService
  /** What `tool_search` looks through. Absent where every tool is offered. */
  catalogue?: readonly CatalogueEntry[]
  /** Absent in a call that another call made. */
  call?: CallTools
}
