import type { Agent } from "../agent/agent.ts"
import { activateAgent } from "../call/context.ts"
import { toPrompt } from "../model/convert.ts"
import { orAbort } from "../util/abort.ts"
import { deferTools } from "./deferred-tools.ts"
import { hookDefinitions, hookPrompt } from "./plugin-hooks.ts"
import { promptHistory } from "./prompt-history.ts"
import type { SessionAgent, SessionRun } from "./session-run.ts"
import { systemPrompt } from "./system.ts"

/** Prepares an agent for a run. Throws when the signal fires. */
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
      // The conversation caches converted messages by their ids, and plugins change what those ids contain.
      return changed ? toPrompt({ ...input, ...hooked }) : conversation.toPrompt({ ...input, ...hooked })
    },
    isCurrent: () => !engine.definitions.changedLately() && engine.registry.isCurrent(registered),
  }
}
