/** The library, imported with `import { createTackle, Tool } from "tackle"`. */
import "./util/require-node.ts"

export type { Agent, AgentConfig } from "./agent/agent.ts"
export { type AiToolOutput, type AiToolSource, toAiTools } from "./call/ai-tools.ts"
export type { CallOutcome } from "./call/context.ts"
export { createTackle } from "./engine/create-tackle.ts"
export type { PruneChoice } from "./engine/housekeeping.ts"
export type { TackleOptions } from "./engine/options.ts"
export type {
  AskedQuestion,
  AskedRequest,
  PruneResult,
  Sessions,
  Tackle,
  ToolRegistry,
} from "./engine/tackle.ts"
export {
  createWorkspaceOpener,
  type WorkspaceOpener,
  type WorkspaceOpenerOptions,
} from "./engine/workspaces.ts"
export type { EventOf, EventType, Refusal, RunStatus, TackleEvent, Usage } from "./event/events.ts"
export { type RefusedFile, type RestoredFile, type UndoChoice, UndoRefusedError } from "./files/put-back.ts"
export type { McpPrompt, McpPromptMessage } from "./mcp/client/content.ts"
export { ModelNotFoundError, ProviderError } from "./model/errors.ts"
export type { Model, ModelInfo, ProviderConfig } from "./model/model.ts"
export { PermissionError } from "./permission/errors.ts"
export type { Layer } from "./permission/policy.ts"
export type { PermissionConfig } from "./permission/rules.ts"
export type { RegistryProblem } from "./registry/registered-tool.ts"
export type { ToolListing } from "./registry/registry.ts"
export type { Delivery, Input, PromptFile } from "./schema/input.ts"
export type { AssistantMessage, Message, MessageWithParts, UserMessage } from "./schema/message.ts"
export type { Part, ToolPart } from "./schema/part.ts"
export type { Grant, PermissionReply, PermissionRequest, Rule } from "./schema/permission.ts"
export type { Question, QuestionAnswers, QuestionRequest } from "./schema/question.ts"
export type { ListedSession, Session, SessionMatch } from "./schema/session.ts"
export type { Todo } from "./schema/todo.ts"
export type { Attachment, ToolState } from "./schema/tool-state.ts"
export { type Archive, ArchiveError } from "./session/archive.ts"
export { type Command, type CommandCall, type CommandConfig, findCommand } from "./session/command.ts"
export { CompactionError } from "./session/compact.ts"
export type { UndoOptions, UndoResult } from "./session/handle.ts"
export {
  type CompactionResult,
  EngineClosedError,
  type PromptOptions,
  type PromptRun,
  SessionBusyError,
  type SessionHandle,
  type SessionInputs,
  type SessionStatus,
} from "./session/handle.ts"
export {
  InputConflictError,
  type InputEdit,
  InputEndedError,
  type Receipt,
  type SendOptions,
} from "./session/inputs.ts"
export { SessionHeldError } from "./session/lease.ts"
export { createRunSlots, type RunSlots } from "./session/run-slots.ts"
export type { FileDiff } from "./session/session-diff.ts"
export type { EventStreamOptions, SessionEvent, StreamReset } from "./session/session-events.ts"
export type { ModelStats, ToolStats, UsageStats } from "./session/stats.ts"
export type { OpenedWorkspace } from "./session/workspace.ts"
export type { ContentLimits, ContentStore } from "./store/content-store.ts"
export type {
  Change,
  CommitOptions,
  CurrentInputs,
  Lease,
  LeaseHolder,
  LeaseResult,
  MessagePage,
  SearchHit,
  SequencedChange,
  SessionFilter,
  Store,
} from "./store/store.ts"
export { LeaseLostError, StoreError, StoreRemovedError } from "./store/store.ts"
export { TenantLimitError, type TenantLimits } from "./store/tenants.ts"
export type { AskRequest, MetadataUpdate, ToolContext } from "./tool/context.ts"
export { Tool } from "./tool/index.ts"
export type { ToolResult } from "./tool/tool.ts"
export { AbortedError, TimeoutError } from "./util/abort.ts"
export { TackleError, UsageError } from "./util/errors.ts"
