import { dirname } from "node:path"
import type { Agent } from "../agent/agent.ts"
import type { CallHost, Turn } from "../call/call.ts"
import { toPrompt } from "../model/convert.ts"
import type { Model, ModelPrompt } from "../model/model.ts"
import type { Scope } from "../permission/request.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import { orAbort } from "../util/abort.ts"
import type { Budget } from "./budget.ts"
import type { Spent } from "./cost.ts"
import { deferTools } from "./deferred-tools.ts"
import { hookDefinitions, hookPrompt } from "./plugin-hooks.ts"
import { promptHistory } from "./prompt-history.ts"
import { createSampler } from "./sample-model.ts"
import type { SessionServices } from "./services.ts"
import { systemPrompt } from "./system.ts"

/** What the calls of a step get, apart from what the loop itself knows. */
export type StepHost = Omit<CallHost, "onState" | "onNested">

/** An agent at work on a prompt, and all that follows from which agent it is. */
export interface Worker {
  agent: Agent
  /** What the model is offered at the end of the history. Cheap to call at every step. */
  tools(history: readonly MessageWithParts[]): readonly OfferedTool[]
  /** The history as the provider takes it. Cheap to call at every step. Rejects when the signal fires. */
  toPrompt(history: readonly MessageWithParts[]): Promise<ModelPrompt>
  /**
   * False where the files of its tools, or of agents and skills, have changed: it is to be made anew. Cheap to call at
   * every step.
   */
  isCurrent(): boolean
  host(step: { messageID: string; turn: Turn; offered: ReadonlyMap<string, OfferedTool> }): StepHost
}

/** What stays the same in a run, whoever works. */
export interface RunContext {
  /** As it is now: the policy of an agent is asked for again at each request. */
  session(): Session
  model: Model
  toPrompt(input: {
    system: readonly string[]
    messages: readonly MessageWithParts[]
    model: Model["info"]
  }): ModelPrompt
  files: CallHost["files"]
  instructions: CallHost["instructions"]
  changes: CallHost["changes"]
  todo: NonNullable<CallHost["todo"]>
  spawn: NonNullable<CallHost["spawn"]>
  /** What of its limits it has not used yet. */
  rest(): Pick<Budget, "maxTokens" | "maxCost">
  /** Hears what the model was asked beside the steps. */
  onSpent(spent: Spent): void
  /** Offered beside the agent's own, before them where they have the same id. */
  tool?: OfferedTool
  /** The `task` call that the run works for. */
  caller?: CallHost["parent"]
  signal: AbortSignal
}

/** Makes an agent ready to work on the run. Throws when the signal fires. */
export async function createWorker(
  agent: Agent,
  run: RunContext,
  services: SessionServices,
): Promise<Worker> {
  const { model, files, instructions, changes, todo, spawn, caller, signal } = run
  const session = run.session()
  const { id: sessionID, directory, worktree } = session
  const policy = () => services.policy(run.session(), agent)
  const lacking = services.lacking(agent, session)
  const toolScope = { model: model.info.ref, agent: agent.name, policy: policy(), lacking }
  const offered = await orAbort(services.registry.tools(toolScope), signal)
  const hooked = await hookDefinitions(services.plugins, offered, signal)
  const tools = run.tool ? [...hooked.filter(({ id }) => id !== run.tool?.id), run.tool] : hooked
  const { deferred, catalogue, offered: offeredAt } = deferTools(tools, services.toolBytes)
  const planFile = services.planFile(session)
  const system = systemPrompt({
    agent,
    directory,
    worktree,
    instructions: services.instructions,
    now: new Date(),
    ...(agent.plans && planFile !== undefined ? { planFile } : {}),
  })
  const question: CallHost["question"] = (asked, tool, stop) =>
    services.questions.ask({ sessionID, ...asked, tool }, stop)
  const sample = createSampler({
    model,
    limits: services.streamLimits,
    rest: run.rest,
    onSpent: run.onSpent,
  })
  const spillDirectory = `${services.spillRoot}/${sessionID}`
  const scope: Scope = { directory, worktree, policy, own: ownDirectories(session, agent, services) }
  if (services.searchPath !== undefined) scope.searchPath = services.searchPath
  const shared: Omit<StepHost, "messageID" | "turn" | "offered"> = {
    sessionID,
    agent: agent.name,
    model: model.info.ref,
    directory,
    worktree,
    permission: services.permission,
    withheld: (id) => services.registry.withheld(id, toolScope),
    deferred,
    ...(catalogue === undefined ? {} : { catalogue }),
    scope,
    files,
    todo,
    jobs: services.jobs,
    sandbox: services.sandbox(agent, scope),
    spillDirectory,
    signal,
    onEscape: services.onEscape,
    ...(changes === undefined ? {} : { changes }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(lacking.task === undefined ? { spawn } : {}),
    ...(lacking.question === undefined ? { question } : {}),
    sample,
    ...(planFile === undefined ? {} : { plan: { file: planFile } }),
    ...(caller === undefined ? {} : { parent: caller }),
    ...(services.recorded === undefined ? {} : { recorded: services.recorded }),
    ...(services.lsp === undefined ? {} : { lsp: services.lsp }),
    ...(services.formatter === undefined ? {} : { formatter: services.formatter }),
    ...(services.spillBytes === undefined ? {} : { spillBytes: services.spillBytes }),
    ...(services.mask === undefined ? {} : { mask: services.mask }),
    ...(services.plugins === undefined ? {} : { plugins: services.plugins }),
    ...(services.outputLimits === undefined ? {} : { limits: services.outputLimits }),
  }
  return {
    agent,
    tools: offeredAt,
    async toPrompt(history) {
      const input = { system, messages: promptHistory(history), model: model.info }
      const { changed, ...told } = await hookPrompt(services.plugins, { ...input, sessionID }, signal)
      // What was converted before is kept by the ids of messages, and plugins change what stands under them.
      return changed ? toPrompt({ ...input, ...told }) : run.toPrompt({ ...input, ...told })
    },
    isCurrent: () => !services.definitions.changedLately() && services.registry.isCurrent(offered),
    host: (step) => ({ ...shared, ...step }),
  }
}

/**
 * What a session reads without a question: its long outputs, those of the sessions above that were handed on, its plan,
 * and what belongs to skills.
 */
function ownDirectories(session: Session, agent: Agent, services: SessionServices): string[] {
  const family = [session, ...services.lineage.above(session)]
  const plan = family.map((each) => services.planFile(each)).find((file) => file !== undefined)
  const spills = family.map(({ id }) => `${services.spillRoot}/${id}`)
  return [...spills, ...(plan === undefined ? [] : [dirname(plan)]), ...services.skillDirectories(agent)]
}
