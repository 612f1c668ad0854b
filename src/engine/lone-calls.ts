import { join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import { type Call, type CallHost, type CallOutcome, newTurn, type Turn } from "../call/call.ts"
import { runCalls } from "../call/schedule.ts"
import { settleUnstarted } from "../call/settle.ts"
import type { Scope } from "../permission/request.ts"
import { prepareOwn } from "../registry/offered-tool.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { SessionServices } from "../session/services.ts"
import { abortedError, orAbort } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { type CallerCall, chosenOf, type Standing } from "./caller.ts"
import { type Lacking, nobodyAnswers, onlyInSessions } from "./lacking.ts"
import type { Policies } from "./policies.ts"

/** One call without a model or a stored session. */
export interface LoneCall extends Partial<CallerCall> {
  tool: string
  /** JSON text. */
  input: string
  /** Default: the engine's default agent. */
  agent?: string
}

/** Calls through the whole pipeline for somebody who has no session. */
export interface LoneCalls {
  /** Rejects with `AbortedError` where the signal fires before the call has begun, and with `EngineClosedError`. */
  run(call: LoneCall, standing: Standing): Promise<CallOutcome & { turn: Turn }>
  /** Every tool, with the reason where it is not offered. */
  list(agent: Agent, standing: Standing): Promise<ToolListing[]>
  /** Resolves when no call is under way. */
  settled(): Promise<void>
}

/** What calls by themselves take from the engine. */
export interface LoneCallsOptions {
  directory: string
  worktree: string
  defaultAgent: string
  /** Calls end when it fires, like the runs of the sessions. */
  signal: AbortSignal
  policies: Policies
  lacking(agent: Agent): Lacking
  hide<T>(value: T): T
  /** Of what sessions are built on, the part that a call by itself needs too. */
  services: Pick<
    SessionServices,
    | "agent"
    | "assertOpen"
    | "definitions"
    | "formatter"
    | "jobs"
    | "lsp"
    | "mask"
    | "onEscape"
    | "outputLimits"
    | "permission"
    | "plugins"
    | "questions"
    | "registry"
    | "sandbox"
    | "searchPath"
    | "skillDirectories"
    | "spillBytes"
    | "spillRoot"
  >
}

/** Each call is a turn of its own: nothing of it is stored. */
export function createLoneCalls(options: LoneCallsOptions): LoneCalls {
  const { directory, worktree, defaultAgent, policies, hide, services } = options
  const { registry, questions } = services
  const underWay = new Set<Promise<unknown>>()

  async function run(given: LoneCall & { signal: AbortSignal }, standing: Standing) {
    const { tool, input, signal, messageID = newId("msg"), onProgress = () => {}, by, form, sample } = given
    await services.definitions.follow()
    const agent = services.agent(given.agent ?? defaultAgent)
    await policies.load({ id: standing.id, worktree })
    const toolScope = toolScopeOf(agent, standing)
    const call: Call = { callID: newId("prt"), tool, raw: input }
    const turn = newTurn()
    const registered = await orAbort(registry.tools(toolScope), signal).catch((error: unknown) => {
      if (signal.aborted) return undefined
      throw error
    })
    if (!registered) return { ...settleUnstarted(call, abortedError(signal), turn), turn }
    const offered = by ? [await prepareOwn(by, agent.name)] : chosenOf(standing, registered)
    const [outcome] = await runCalls([call], {
      ...surroundingsOf(agent, standing, toolScope.lacking),
      messageID,
      offered: new Map(offered.map((entry) => [entry.id, entry])),
      ...(form === undefined ? {} : { form }),
      ...(sample === undefined ? {} : { sample }),
      withheld: (id) => registry.withheld(id, toolScope),
      turn,
      signal,
      async onState(callID, state) {
        if (callID === call.callID && state.status === "running") onProgress(state)
      },
    })
    if (!outcome) throw new Error("runCalls gave no outcome for its one call")
    return { ...hide(outcome), turn: { ...turn, refused: hide(turn.refused) } }
  }

  function policyOf(agent: Agent, { id }: Standing): Scope["policy"] {
    return () => policies.of({ id, worktree }, agent)
  }

  function toolScopeOf(agent: Agent, standing: Standing) {
    const lacking = { ...options.lacking(agent), ...onlyInSessions }
    if (standing.questions === false) lacking.question = nobodyAnswers
    return { agent: agent.name, policy: policyOf(agent, standing)(), lacking }
  }

  /** What is the same for every call of theirs. */
  function surroundingsOf(agent: Agent, standing: Standing, lacking: Lacking) {
    const {
      permission,
      jobs,
      lsp,
      formatter,
      spillBytes,
      mask,
      plugins,
      outputLimits: limits,
      searchPath,
    } = services
    const spillDirectory = join(services.spillRoot, standing.id)
    const scope: Scope = {
      directory,
      worktree,
      policy: policyOf(agent, standing),
      own: [spillDirectory, ...services.skillDirectories(agent)],
      ...(searchPath === undefined ? {} : { searchPath }),
    }
    const question: CallHost["question"] = (asked, caller, stop) =>
      questions.ask({ sessionID: standing.id, ...asked, tool: caller }, stop)
    return {
      sessionID: standing.id,
      agent: agent.name,
      directory,
      worktree,
      permission,
      scope,
      files: standing.files,
      ...(standing.todo === undefined ? {} : { todo: standing.todo }),
      jobs,
      sandbox: services.sandbox(agent, scope),
      ...(lsp === undefined ? {} : { lsp }),
      ...(formatter === undefined ? {} : { formatter }),
      ...(lacking.question === undefined ? { question } : {}),
      spillDirectory,
      onEscape: services.onEscape,
      ...(spillBytes === undefined ? {} : { spillBytes }),
      ...(mask === undefined ? {} : { mask }),
      ...(plugins === undefined ? {} : { plugins }),
      ...(limits === undefined ? {} : { limits }),
    }
  }

  return {
    async run({ signal, ...rest }, standing) {
      services.assertOpen()
      const signals = signal ? [options.signal, signal] : [options.signal]
      const call = run({ ...rest, signal: AbortSignal.any(signals) }, standing)
      underWay.add(call)
      const forget = () => underWay.delete(call)
      call.then(forget, forget)
      return call
    },
    async list(agent, standing) {
      await services.definitions.follow()
      return await registry.list(toolScopeOf(agent, standing))
    },
    async settled() {
      await Promise.allSettled(underWay)
    },
  }
}
