import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import { activateAgent } from "../call/context.ts"
import { toPrompt } from "../model/convert.ts"
import { orAbort } from "../util/abort.ts"
import { localDay } from "../util/time.ts"
import { deferTools } from "./deferred-tools.ts"
import { promptHistory } from "./history.ts"
import { hookDefinitions, hookPrompt } from "./plugin-hooks.ts"
import type { SessionAgent, SessionRun } from "./session-run.ts"

/** Prepares an agent for a run. Throws the signal's reason if the signal aborts. */
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

/** Returns the system prompts of an agent: its prompt, its environment and the user's instructions. */
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
