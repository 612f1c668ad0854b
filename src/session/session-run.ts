import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import { type ActiveAgent, activateAgent, type Run } from "../call/context.ts"
import { toPrompt } from "../model/history-to-prompt.ts"
import type { Model, ModelPrompt } from "../model/model.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import { orAbort } from "../util/abort.ts"
import { localDay } from "../util/time.ts"
import type { Budget, SharedBudget, Spending } from "./budget.ts"
import type { ContextLimit } from "./context-limit.ts"
import type { Conversation } from "./conversation.ts"
import { deferTools } from "./deferred-tools.ts"
import { promptHistory } from "./history.ts"
import { hookDefinitions, hookPrompt } from "./plugin-hooks.ts"
import type { SessionEngine } from "./session-engine.ts"
import type { StructuredAnswer } from "./structured-answer.ts"

/** The state of one prompt that does not depend on the agent. */
export interface SessionRun extends Run {
  readonly engine: SessionEngine
  readonly conversation: Conversation
  readonly session: Session
  readonly model: Model
  /** The session's messages so far. The loop appends to this array. */
  readonly history: MessageWithParts[]
  /** Limits for this prompt. */
  readonly budget: Budget
  /** Budget of the parent run, if this prompt belongs to a subagent. */
  readonly shared?: SharedBudget
  readonly spending: Spending
  /** Keeps the history within the model's context. */
  readonly contextLimit: ContextLimit
  /** The structured answer that the prompt requires, if any. */
  readonly demand?: StructuredAnswer
  /** Prepares the agent with this name for this run. Throws `UsageError` if no such agent exists. */
  activate(agent: string): Promise<SessionAgent>
}

/** The agent that works on a prompt, with its tools and system prompt. */
export interface SessionAgent extends ActiveAgent {
  readonly run: SessionRun
  /** Returns the tools to offer to the model for the next step. Cheap enough to call at every step. */
  tools(history: readonly MessageWithParts[]): readonly OfferedTool[]
  /**
   * Converts the history to the provider's format. Cheap enough to call at every step. Rejects if the signal aborts.
   */
  toPrompt(history: readonly MessageWithParts[]): Promise<ModelPrompt>
  /**
   * Returns false if tools, agents or skills may have changed, so that the agent must be created again. Cheap enough to
   * call at every step.
   */
  isCurrent(): boolean
}

/** Returns the tools that are offered to an agent after this history, keyed by id. */
export function offeredTools(
  active: SessionAgent,
  history: readonly MessageWithParts[],
): ReadonlyMap<string, OfferedTool> {
  return new Map(active.tools(history).map((tool) => [tool.id, tool]))
}

/** Prepares an agent for a run. Rejects if the signal aborts. */
export async function createSessionAgent(agent: Agent, run: SessionRun): Promise<SessionAgent> {
  const { engine, session, model, conversation, demand, signal } = run
  const active = activateAgent(run, agent, engine.unavailableTools(agent, session))
  const registered = await orAbort(engine.registry.tools(active.toolScope), signal)
  const hooked = await hookDefinitions(engine.plugins, registered, signal)
  const answerTool = demand?.tool
  const tools = answerTool ? [...hooked.filter(({ id }) => id !== answerTool.id), answerTool] : hooked
  const { deferred, catalogue, offered } = deferTools(tools, engine.toolBytes)
  const system = systemPrompt({
    agent,
    directory: session.directory,
    worktree: session.worktree,
    instructions: engine.instructions,
    now: new Date(),
    planFile: agent.plans ? run.planFile : undefined,
  })
  return {
    ...active,
    run,
    deferred,
    catalogue,
    tools: offered,
    async toPrompt(history) {
      const input = { system, messages: promptHistory(history), model: model.info }
      const { changed, ...hooked } = await hookPrompt(
        engine.plugins,
        { ...input, sessionID: session.id },
        signal,
      )
      // The conversation caches converted messages by id, but plugins change the content of messages.
      return changed ? toPrompt({ ...input, ...hooked }) : conversation.toPrompt({ ...input, ...hooked })
    },
    isCurrent: () => !engine.definitions.changedLately() && engine.registry.isCurrent(registered),
  }
}

/** Returns the system prompts: the agent's prompt, a description of the environment, and the instructions. */
function systemPrompt(input: {
  agent: Agent
  directory: string
  worktree: string
  instructions: readonly string[]
  now: Date
  /** The only file that the agent may write. */
  planFile?: string
}): string[] {
  return [input.agent.prompt, environment(input), ...input.instructions].filter((text) => text !== "")
}

function environment({
  directory,
  worktree,
  now,
  planFile,
}: {
  directory: string
  worktree: string
  now: Date
  planFile?: string
}): string {
  const lines = [
    `Working directory: ${directory}`,
    ...(worktree === directory ? [] : [`Project root: ${worktree}`]),
    `Git repository: ${existsSync(join(worktree, ".git")) ? "yes" : "no"}`,
    ...(planFile === undefined ? [] : [`Plan file (the only writable file): ${planFile}`]),
    `Platform: ${process.platform}`,
    // Omits the time, so that the provider's prompt cache stays valid.
    `Today: ${localDay(now.getTime())}`,
  ]
  return `<environment>\n${lines.join("\n")}\n</environment>`
}
