import type { Agent } from "../agent/agent.ts"
import type { CallHost } from "../call/call.ts"
import { createTimeLimit } from "../call/time-limit.ts"
import type { Bus } from "../event/bus.ts"
import type { Usage } from "../event/events.ts"
import type { MessageWithParts, ModelRef } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { SpawnRequest, SubagentProgress, SubagentResult } from "../tool/context.ts"
import { TackleError } from "../util/errors.ts"
import { addUsage } from "./cost.ts"
import type { PromptOptions, SessionHandle } from "./handle.ts"
import { findNewest } from "./history.ts"
import type { Spending } from "./spending.ts"
import { watchFamily } from "./watch-family.ts"

/** What one task may use. */
export interface SubagentLimits {
  /** Levels of subagents below a session that a person prompts. 1: a subagent starts none itself. */
  depth: number
  /** Time for one task. What a person takes to answer does not count. */
  timeMs: number
  /** Steps of the model, where the agent does not name fewer. */
  steps?: number
  /** Without what came from a cache. */
  tokens?: number
}

/** One level, as in OpenCode; half an hour, since a task without an end holds up the session above it for ever. */
export const defaultSubagentLimits: SubagentLimits = { depth: 1, timeMs: 1_800_000 }

/** What subagents need of the runtime. */
export interface SubagentServices {
  limits: SubagentLimits
  /** An agent that may be started by another; throws a text with those there are. */
  agent(name: string): Agent
  /** The names of those that the rules let an agent start. */
  startable(agent: string): string[]
  start(child: { parent: Session; agent: Agent; model: ModelRef; title: string }): Promise<SessionHandle>
  find(id: string): Promise<SessionHandle | undefined>
  /** The session's handle is not needed any more, unless it is gone on with. */
  release(id: string): void
}

/** The model asked to go on with a task that it cannot go on with. */
export class UnknownTaskError extends TackleError {
  constructor(message: string) {
    super(message, { code: "task.unknown", recoverable: true })
  }
}

/** So many of its last calls are shown of a subagent. */
const shownCalls = 5

/**
 * Starts subagents for the calls of one run. Each works in a child session of its own, which can be gone on with. What
 * it uses, however it ends, is the run's.
 */
export function createSpawner(options: {
  parent: () => Session
  model: ModelRef
  bus: Bus
  services: SubagentServices
  spending: Spending
}): NonNullable<CallHost["spawn"]> {
  const { parent, model, bus, services, spending } = options
  /** By the sessions of those that are at work. */
  const used = new Map<string, Usage>()
  const underWay = () => addUsage([...used.values()])

  return async (request, { messageID, callID }) => {
    const { limits } = services
    const agent = services.agent(request.agent)
    const child = await childFor(request, agent)
    const sessionID = child.id
    const limit = createTimeLimit(request.signal, {
      ms: limits.timeMs,
      expired: `The subagent was stopped: its time of ${limits.timeMs / 1000} s was over.`,
    })
    const progress = trackCalls(sessionID, request.onProgress)
    let cause: string | undefined
    const family = watchFamily(bus, sessionID, {
      onWait: (answered) => limit.outside(() => answered),
      onPart: progress.take,
      onError: (message) => {
        cause = message
      },
    })
    limit.start()
    try {
      progress.report()
      const budget: PromptOptions = {
        ...spending.rest(underWay()),
        shared: {
          used(usage) {
            used.set(sessionID, usage)
            spending.report(underWay())
          },
          limit: () => spending.limit(underWay()),
        },
        maxSteps: Math.min(agent.steps, limits.steps ?? agent.steps),
      }
      const { maxTokens = Number.POSITIVE_INFINITY } = budget
      if (limits.tokens !== undefined) budget.maxTokens = Math.min(limits.tokens, maxTokens)
      const caller = { sessionID: parent().id, messageID, callID, agent: agent.name }
      const end = await child.prompt(request.prompt, { ...budget, caller, signal: limit.signal }).completed
      used.delete(sessionID)
      spending.childEnded(end)
      const { status, durationMs } = end
      const text = end.text === "" ? await lastWords(child) : end.text
      const result: SubagentResult = { sessionID, status, text, count: progress.count(), durationMs }
      return cause === undefined ? result : { ...result, cause }
    } finally {
      used.delete(sessionID)
      limit.end()
      family.end()
      services.release(sessionID)
    }
  }

  async function childFor(request: SpawnRequest, agent: Agent): Promise<SessionHandle> {
    const { sessionID, description } = request
    if (sessionID === undefined) {
      const title = `${description} (@${agent.name})`
      return services.start({ parent: parent(), agent, model: agent.model ?? model, title })
    }
    const child = await services.find(sessionID)
    if (child?.info().parentID !== parent().id)
      throw new UnknownTaskError(
        `This session has no task ${sessionID}. Leave out task_id to begin a new one.`,
      )
    const own = child.info().agent
    if (own !== agent.name)
      throw new UnknownTaskError(`The task ${sessionID} is one of the subagent ${own}, not of ${agent.name}.`)
    return child
  }
}

/** What it last said in answer to its last prompt: a run that was stopped may have ended in the middle of a call. */
async function lastWords(child: SessionHandle): Promise<string> {
  const last = await findNewest(
    (page) => child.messages(page),
    (entry) => entry.message.role === "user" || saidBy(entry) !== undefined,
  )
  return last?.message.role === "assistant" ? (saidBy(last) ?? "") : ""
}

function saidBy({ parts }: MessageWithParts): string | undefined {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text.trim()] : []))
  return texts.findLast((text) => text !== "")
}

/** The calls of a subagent in the order they began. */
function trackCalls(sessionID: string, report: (progress: SubagentProgress) => void) {
  const calls = new Map<string, SubagentProgress["calls"][number]>()
  const count = () => calls.size
  const tell = () =>
    report({
      sessionID,
      count: count(),
      calls: [...calls.values()].slice(-shownCalls).map((call) => ({ ...call })),
    })

  return {
    count,
    report: tell,
    take({ id, tool, state }: ToolPart): void {
      const known = calls.get(id)
      const title = "title" in state && state.title !== undefined ? state.title : (known?.title ?? "")
      if (known?.status === state.status && known.title === title) return
      calls.set(id, { tool, title, status: state.status })
      tell()
    },
  }
}
