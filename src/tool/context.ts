import type { FileTracker } from "../files/file-tracker.ts"
import type { ChangeCapability } from "../files/turn-changes.ts"
import type { FormatterService } from "../formatter/service.ts"
import type { LanguageService } from "../lsp/service.ts"
import type { Command, ConfinedCommand } from "../sandbox/bounds.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Action } from "../schema/permission.ts"
import type { Todo } from "../schema/todo.ts"
import type { AskForm, AskPerson } from "./ask-person.ts"
import type { CallTools } from "./call-tools.ts"
import type { InstructionCapability } from "./instructions.ts"
import type { JobCapability } from "./job.ts"
import type { Sample } from "./sample.ts"
import type { Spawn } from "./spawn.ts"
import type { SpillOpener } from "./spill.ts"

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
  files: FileTracker
  /** Absent without a session: there is no turn to undo. */
  changes?: ChangeCapability
  /** This one, and those below, only some hosts provide. */
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

/** Where the session keeps its plan. */
export interface PlanCapability {
  /** Absolute. It need not exist. */
  file: string
}

/** A tool that the session has and the model is not offered yet. */
export interface CatalogueEntry {
  id: string
  description: string
  /** Names of its parameters. */
  parameters: readonly string[]
}

/** Language servers, for as long as the engine runs. */
export type LanguageCapability = Omit<LanguageService, "close">
