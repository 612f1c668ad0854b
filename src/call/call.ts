import type { Refusal } from "../event/events.ts"
import type { FileTracker } from "../files/file-tracker.ts"
import type { ChangeCapability } from "../files/turn-changes.ts"
import type { FormatterService } from "../formatter/service.ts"
import type { Permission } from "../permission/permission.ts"
import type { Scope } from "../permission/request.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { ModelRef } from "../schema/message.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionDocument } from "../schema/question.ts"
import type { ToolState, ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type {
  AskForm,
  CatalogueEntry,
  InstructionCapability,
  JobCapability,
  LanguageCapability,
  PlanCapability,
  Sample,
  SandboxCapability,
  SpawnRequest,
  SubagentResult,
  TodoCapability,
} from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { Handover, OutputLimits } from "../tool/tool.ts"

/** A call as the model made it. */
export interface Call {
  callID: string
  /** The name as written; it may not exist. */
  tool: string
  /** The arguments as written: JSON text, or what was meant to be. */
  raw: string
  /** The answer was cut off by the output limit inside this call. */
  cut?: boolean
  /** What was mended before it came here, in words: a call that was read from a text may have needed it. */
  repaired?: string
}

/** What became of a call. `state` is what was last given to `onState`. */
export interface CallOutcome {
  callID: string
  state: ToolStateCompleted | ToolStateError
}

/** A past call of this turn, as the loop detector sees it. `result` is the text that came back. */
export interface PastCall {
  tool: string
  input: string
  result?: string | undefined
}

/** What the calls of one prompt share, across its steps. */
export interface Turn {
  past: PastCall[]
  refused: Refusal[]
  /** Calls refused as a loop. The third ends the run. */
  loopRefusals: number
  /** What a call of this step decided about the next one. No further call of the step runs. */
  handover?: Handover
}

/** A turn in which nothing has happened yet. */
export function newTurn(): Turn {
  return { past: [], refused: [], loopRefusals: 0 }
}

/** How a call ended when it was recorded. */
export type RecordedResults = (call: {
  tool: string
  input: Readonly<Record<string, unknown>>
}) => CallOutcome["state"]

/** Everything the calls of one step need of the world. */
export interface CallHost {
  sessionID: string
  messageID: string
  agent: string
  model?: ModelRef
  directory: string
  worktree: string
  offered: ReadonlyMap<string, OfferedTool>
  /** Tools that the model is not offered yet, but may call by their exact names. */
  deferred?: ReadonlyMap<string, OfferedTool>
  /** What is told of them to whoever looks for them. */
  catalogue?: readonly CatalogueEntry[]
  permission: Permission
  scope: Scope
  files: FileTracker
  changes?: ChangeCapability
  todo?: TodoCapability
  jobs?: JobCapability
  sandbox?: SandboxCapability
  lsp?: LanguageCapability
  formatter?: FormatterService
  /** Runs a subagent for the call named. Absent where none can be started. */
  spawn?(request: SpawnRequest, caller: CallReference): Promise<SubagentResult>
  /** Asks the person for the call named. Absent where nobody could answer. */
  question?(
    asked: { questions: Question[]; document?: QuestionDocument },
    caller: CallReference,
    signal: AbortSignal,
  ): Promise<QuestionAnswers | undefined>
  /** Shows the person a form of an MCP server. Absent where only questions can be shown. */
  form?: AskForm
  /** Asks the model of the session. Absent where there is none. */
  sample?: Sample
  plan?: PlanCapability
  instructions?: InstructionCapability
  /** Keeps calls that a call makes, before their first state. Without it they are not kept. */
  onNested?(parentCallID: string, calls: readonly Call[]): Promise<void>
  /** True for the calls that a call makes: they make none. */
  nested?: boolean
  /** The `task` call that this session works for: every request names it. */
  parent?: NonNullable<CallReference["parent"]>
  extra?: Record<string, unknown>
  /** `<data>/truncate/<sessionID>`. */
  spillDirectory: string
  spillBytes?: number
  /** Hides secrets in all that a call leaves behind. */
  mask?: SecretMask
  limits?: Partial<OutputLimits>
  /** Called before and after each call. Absent where there is no plugin. */
  plugins?: PluginHost
  /** Why a tool that exists is not offered; undefined for a name that is no tool's. */
  withheld?(id: string): string | undefined
  turn: Turn
  /** Gives the recorded end of a call, in a run that is played back. */
  recorded?: RecordedResults
  /** Set where no call may run any more: why, for the model. */
  closed?: string
  /** Fires on the person's interrupt and the end of the run. */
  signal: AbortSignal
  /** Gets every state of every call, in order. Where it says that the call may act, it is stored when this resolves. */
  onState(callID: string, state: ToolState): Promise<void>
  /** Resolves when all states so far are stored and announced. Absent where `onState` waits for each. */
  announced?(): Promise<void>
  /** An error that a tool's code let escape. */
  onEscape(tool: string, error: unknown): void
}
