import type { Agent } from "../agent/agent.ts"
import type { Run } from "../call/context.ts"
import { createTimeLimit } from "../call/time-limit.ts"
import type { Bus } from "../event/bus.ts"
import type { EventOf, TackleEvent, Usage } from "../event/events.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { SpawnRequest, SubagentProgress, SubagentResult } from "../tool/context.ts"
import { TackleError } from "../util/errors.ts"
import { addUsage } from "./budget.ts"
import type { PromptOptions, SessionHandle } from "./handle.ts"
import { findNewest } from "./history.ts"
import type { SubagentLimits } from "./session-engine.ts"
import type { SessionRun } from "./session-run.ts"

/**
 * Default limits: one level of subagents, as in OpenCode, and 30 minutes per task. Without a time limit, a task that
 * never ends would block the parent session.
 */
export const defaultSubagentLimits: SubagentLimits = { depth: 1, timeMs: 1_800_000 }

/** Thrown when the model asks to continue a task that does not exist or that belongs to another subagent. */
class UnknownTaskError extends TackleError {
  constructor(message: string) {
    super(message, { code: "task.unknown", recoverable: true })
  }
}

/** Maximum number of a subagent's calls that are shown. Only the latest calls are shown. */
const shownCalls = 5

/**
 * Creates a function that runs subagents for a run's calls. Each subagent works in a child session that can be
 * continued later. The subagent's usage counts toward the run, regardless of how the subagent ends.
 */
export function createSpawner(run: SessionRun): NonNullable<Run["spawn"]> {
  const { engine, spending, model } = run
  const services = engine.subagents
  /** Usage of running subagents, keyed by session id. */
  const used = new Map<string, Usage>()
  const underWay = () => addUsage([...used.values()])

  return async (request, { messageID, callID }) => {
    const { limits } = services
    const agent = services.agent(request.agent)
    const child = await childFor(request, agent)
    const sessionID = child.id
    const limit = createTimeLimit(request.signal, {
      ms: limits.timeMs,
      expired: `The subagent was stopped: its time limit of ${limits.timeMs / 1000} s was reached.`,
    })
    const progress = trackCalls(sessionID, request.onProgress)
    let cause: string | undefined
    const family = watchFamily(engine.bus, sessionID, {
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
            progress.spend(usage)
            spending.report(underWay())
          },
          limit: () => spending.limit(underWay()),
        },
        maxSteps: Math.min(agent.steps, limits.steps ?? agent.steps),
      }
      const { maxTokens = Number.POSITIVE_INFINITY } = budget
      if (limits.tokens !== undefined) budget.maxTokens = Math.min(limits.tokens, maxTokens)
      const caller = { sessionID: run.session.id, messageID, callID, agent: agent.name }
      const end = await child.prompt(request.prompt, {
        ...budget,
        caller,
        extra: run.extra,
        signal: limit.signal,
      }).completed
      used.delete(sessionID)
      spending.childEnded(end)
      progress.spend(end.usage)
      const { status, usage, durationMs } = end
      const text = end.text === "" ? await lastWords(child) : end.text
      const result: SubagentResult = { sessionID, status, text, count: progress.count(), usage, durationMs }
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
      return services.start({ parent: run.session, agent, model: agent.model ?? model.info.ref, title })
    }
    const child = await services.find(sessionID)
    if (child?.info().parentID !== run.session.id)
      throw new UnknownTaskError(`This session has no task ${sessionID}. Omit task_id to start a new task.`)
    const own = child.info().agent
    if (own !== agent.name)
      throw new UnknownTaskError(
        `Task ${sessionID} belongs to the subagent ${own}, not to ${agent.name}. Set subagent_type to ${own}, or omit task_id to start a new task.`,
      )
    return child
  }
}

/**
 * Returns the last text that the subagent wrote after its latest prompt. A stopped run may have ended during a call,
 * without a final text.
 */
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

/** Tracks a subagent's calls in the order in which they started. */
function trackCalls(sessionID: string, report: (progress: SubagentProgress) => void) {
  const calls = new Map<string, SubagentProgress["calls"][number]>()
  let usage = addUsage([])
  const count = () => calls.size
  const send = () =>
    report({
      ...{ sessionID, usage },
      count: count(),
      calls: [...calls.values()].slice(-shownCalls).map((call) => ({ ...call })),
    })

  return {
    count,
    report: send,
    spend(total: Usage): void {
      usage = total
      send()
    },
    take({ id, tool, state }: ToolPart): void {
      const known = calls.get(id)
      const title = "title" in state && state.title !== undefined ? state.title : (known?.title ?? "")
      if (known?.status === state.status && known.title === title) return
      calls.set(id, { tool, title, status: state.status })
      send()
    },
  }
}

/** Receives events from a session that another session waits for. */
export interface FamilyListener {
  /** Called when the session or a session below it waits for the user. `answered` resolves when the wait ends. */
  onWait(answered: Promise<void>): Promise<void>
  /** Called when one of the session's own calls changes. */
  onPart?(part: ToolPart): void
  /** Called when the session's run fails or reaches a limit. */
  onError?(message: string): void
}

/** Listens to a session and the sessions below it until `end` is called. `end` also resolves every pending wait. */
export function watchFamily(bus: Bus, sessionID: string, listener: FamilyListener): { end(): void } {
  /** Functions that end the subscriptions, keyed by session id. */
  const members = new Map<string, () => void>()
  const waits = new Map<string, () => void>()

  function wait(requestID: string): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    waits.set(requestID, resolve)
    // Never rejects, because `promise` never rejects.
    void listener.onWait(promise)
  }

  function answered(requestID: string): void {
    waits.get(requestID)?.()
    waits.delete(requestID)
  }

  function join(id: string): void {
    if (!members.has(id)) members.set(id, bus.follow(id, take))
  }

  function take(event: TackleEvent): void {
    if (event.type === "permission.asked" || event.type === "question.asked") wait(event.request.id)
    if (event.type === "permission.replied") answered(event.requestID)
    if (event.type === "question.replied" || event.type === "question.rejected") answered(event.requestID)
    if (event.sessionID !== sessionID) return
    if (event.type === "part.updated" && event.part.type === "tool") listener.onPart?.(event.part)
    if (event.type === "session.error") listener.onError?.(event.error.message)
  }

  function adopt({ session }: EventOf<"session.created" | "session.updated">): void {
    if (members.has(session.parentID ?? "")) join(session.id)
  }

  join(sessionID)
  const leave = [bus.on("session.created", adopt), bus.on("session.updated", adopt)]

  return {
    end() {
      for (const unsubscribe of [...leave, ...members.values()]) unsubscribe()
      for (const resolve of waits.values()) resolve()
      waits.clear()
    },
  }
}
