/** The library: `import { createTackle, Tool } from "tackle"`. */
export type { Agent, AgentConfig } from "./agent/agent.ts"
export { type AiToolSource, toAiTools } from "./call/ai-tools.ts"
export type { CallOutcome } from "./call/call.ts"
export type { EventOf, EventType, Refusal, RunStatus, TackleEvent, Usage } from "./event/events.ts"
export { ModelNotFoundError, ProviderError } from "./model/errors.ts"
export type { Model, ModelInfo, ProviderConfig } from "./model/model.ts"
export { PermissionError } from "./permission/errors.ts"
export type { Layer } from "./permission/policy.ts"
export type { PermissionConfig } from "./permission/rules.ts"
export type { RegistryProblem, ToolListing } from "./registry/registry.ts"
export type { TackleOptions } from "./runtime/options.ts"
export { createTackle } from "./runtime/runtime.ts"
export type { AskedQuestion, AskedRequest, PruneResult, Sessions, Tackle } from "./runtime/tackle.ts"
export type { AssistantMessage, Message, MessageWithParts, UserMessage } from "./schema/message.ts"
export type { Part, ToolPart } from "./schema/part.ts"
export type { Grant, PermissionReply, PermissionRequest, Rule } from "./schema/permission.ts"
export type { Question, QuestionAnswers, QuestionRequest } from "./schema/question.ts"
export type { Session } from "./schema/session.ts"
export type { Todo } from "./schema/todo.ts"
export type { Attachment, ToolState } from "./schema/tool-state.ts"
export { type Archive, ArchiveError } from "./session/archive.ts"
export { CompactionError, type CompactionResult } from "./session/compact.ts"
export {
  EngineClosedError,
  type PromptFile,
  type PromptOptions,
  type PromptRun,
  SessionBusyError,
  type SessionHandle,
} from "./session/handle.ts"
export { SessionHeldError } from "./session/lease.ts"
export type { PruneChoice } from "./session/prune.ts"
export type { UndoResult } from "./session/undo.ts"
export { type RefusedFile, type RestoredFile, UndoRefusedError } from "./snapshot/undo.ts"
export { StoreError } from "./store/errors.ts"
export type { Change, MessagePage, SessionFilter, Store } from "./store/store.ts"
export type { AskRequest, MetadataUpdate, ToolContext } from "./tool/context.ts"
export { Tool } from "./tool/index.ts"
export type { ToolResult } from "./tool/result.ts"
export { AbortedError, TimeoutError } from "./util/abort.ts"
export { TackleError, UsageError } from "./util/errors.ts"
