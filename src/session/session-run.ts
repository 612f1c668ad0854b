import type { ActiveAgent, Run } from "../call/context.ts"
import type { Model, ModelPrompt } from "../model/model.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { Budget, SharedBudget, Spending } from "./budget.ts"
import type { ContextLimit } from "./context-limit.ts"
import type { Conversation } from "./conversation.ts"
import type { SessionEngine } from "./session-engine.ts"
import type { StructuredAnswer } from "./structured-answer.ts"

/** The state of one prompt that does not depend on the agent. */
export interface SessionRun extends Run {
  readonly engine: SessionEngine
  readonly conversation: Conversation
  readonly session: Session
  readonly model: Model
  /** Messages of the session so far. The loop appends to this array. */
  readonly history: MessageWithParts[]
  /** Limits of this prompt, including its subagents. */
  readonly budget: Budget
  /** Budget of the parent run, if this prompt belongs to a subagent. */
  readonly shared?: SharedBudget
  readonly spending: Spending
  /** Keeps the history within the model's context. */
  readonly contextLimit: ContextLimit
  /** The structured answer that the prompt requires, if any. */
  readonly demand?: StructuredAnswer
  /** Activates the agent with this name on this run. */
  activate(agent: string): Promise<SessionAgent>
}

/** An agent that is active on a prompt, with its tools and system prompt. */
export interface SessionAgent extends ActiveAgent {
  readonly run: SessionRun
  /** Returns the tools to offer to the model for the next step. Cheap enough to call at every step. */
  tools(history: readonly MessageWithParts[]): readonly OfferedTool[]
  /**
   * Converts the history to the provider's format. Cheap enough to call at every step. Rejects when the signal fires.
   */
  toPrompt(history: readonly MessageWithParts[]): Promise<ModelPrompt>
  /**
   * Returns false if files of tools, agents or skills have changed, so that the agent must be created again. Cheap
   * enough to call at every step.
   */
  isCurrent(): boolean
}

/** Returns the tools that an agent is offered after this history, by id. */
export function offeredTools(
  active: SessionAgent,
  history: readonly MessageWithParts[],
): ReadonlyMap<string, OfferedTool> {
  return new Map(active.tools(history).map((tool) => [tool.id, tool]))
}
