import { newTurn, type Step, type Turn } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import type { RunStatus } from "../event/events.ts"
import { ProviderError } from "../model/errors.ts"
import { retryDelay } from "../model/retry.ts"
import { streamStep } from "../model/stream.ts"
import type { AssistantMessage, MessageError, MessageWithParts, UserMessage } from "../schema/message.ts"
import type { TextPart } from "../schema/part.ts"
import { StoreError } from "../store/store.ts"
import { sleep, TimeoutError } from "../util/abort.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import { createAnswerCheck } from "./answer-check.ts"
import { addUsage, limitReached, noTokens, stepsMessage, sumUsage } from "./budget.ts"
import { hookParams, hookText } from "./plugin-hooks.ts"
import { handOver, postNote } from "./post-message.ts"
import { offeredTools, type SessionAgent, type SessionRun } from "./session-run.ts"
import { postSteering } from "./steering.ts"
import { type StepProcessor, startStep } from "./step-processor.ts"

/** Number of calls in one turn that are refused as repetitions before the run ends. */
const loopRefusalLimit = 3

/** Result of a loop. `error` is set unless `status` is `completed`. */
export interface LoopResult {
  status: RunStatus
  error?: MessageError
  turn: Turn
  /** The assistant messages of this prompt. */
  messages: AssistantMessage[]
}

/**
 * Asks the model and runs its calls until the model makes no more calls. A call may hand the session over to another
 * agent for the next step. The last step within the limits forbids calls. Does not reject if the model, the provider or
 * a tool fails. Rejects if the store cannot write, and with `UsageError` if the user must fix a problem.
 */
export async function runLoop(first: SessionAgent, prompt: UserMessage): Promise<LoopResult> {
  const { run } = first
  const { engine, budget, shared, spending, contextLimit, history, demand, signal } = run
  const turn = newTurn()
  const answer = demand ?? createAnswerCheck()
  const messages: AssistantMessage[] = []
  const result = (status: RunStatus, error?: MessageError): LoopResult => ({ status, turn, messages, error })
  let active = first
  let user = prompt
  /** Usage of the steps so far. */
  let spent = sumUsage([])
  /** Ids of the calls before the current step. */
  let used: Set<string> | undefined

  for (let number = 1; number <= budget.maxSteps; number += 1) {
    if (number > 1) user = (await postSteering(active, turn)) ?? user
    await contextLimit.beforeStep()
    const usage = addUsage([spent, spending.elsewhere()])
    shared?.used(usage)
    const limit =
      limitReached(budget, number, usage) ?? shared?.limit() ?? (await engine.tenants?.exhausted(run.session))
    const isLast = limit !== undefined
    const processor = startStep(newMessage(active, user), {
      recorder: run.conversation.recorder,
      model: run.model.info,
      isUsed: (id) => {
        used ??= new Set(callIDs(history))
        return used.has(id)
      },
      completeText: engine.plugins?.has("text.complete")
        ? (part: TextPart) => hookText(engine.plugins, part, signal)
        : undefined,
    })
    messages.push(processor.message)

    const failure = await streamWithRetries(processor, { active, user, isLast })
    spent = addUsage([spent, sumUsage([processor.message])])
    await engine.tenants?.record(run.session, processor.message.id, processor.message)
    for (const id of callIDs([processor])) used?.add(id)
    history.push({ message: processor.message, parts: processor.parts })
    if (failure) {
      await processor.end(failure)
      if (signal.aborted) return result(...stopped(signal))
      if (failure.name === "context-overflow" && !isLast && (await contextLimit.afterOverflow())) continue
      return result("failed", failure)
    }

    const calls = processor.calls()
    const step: Step = {
      active,
      turn,
      messageID: processor.message.id,
      offered: offeredTools(active, history),
      recorded: engine.recorded,
      closed: isLast ? noMoreCalls(number) : undefined,
      report: processor.setState,
      stored: processor.stored,
      nest: processor.nest,
    }
    await runCalls(calls, step)
    const verdict = answer.check(processor)
    const isOver = signal.aborted || isLast
    if (!isOver && verdict.kind === "retry" && verdict.notice !== undefined)
      await processor.retry({ attempt: 1, error: verdict.notice, delayMs: 0 })
    const incomplete = !isOver && verdict.kind === "failed" ? verdict.error : undefined
    const waits = calls.length > 0 || verdict.kind !== "met"
    await processor.end(signal.aborted ? stopped(signal)[1] : incomplete, { waits })
    if (turn.handover) user = await handOver(run, turn.handover)
    turn.handover = undefined

    if (signal.aborted) return result(...stopped(signal))
    if (turn.loopRefusals >= loopRefusalLimit) return result("limit", loopMessage)
    if (isLast) return result("limit", limit)
    if (verdict.kind === "failed") return result(demand ? "failed" : "incomplete", verdict.error)
    if (verdict.kind === "met") return result("completed")
    if (verdict.kind === "retry") user = await postNote(run, verdict.message)
    if (user.agent !== active.agent.name || !active.isCurrent()) active = await run.activate(user.agent)
  }
  return result("limit", stepsMessage(budget.maxSteps))
}

/** Returns the ids of all calls in messages. */
function callIDs(messages: readonly Pick<MessageWithParts, "parts">[]): string[] {
  return messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool" ? [part.callID] : [])))
}

const abortedMessage: MessageError = { name: "aborted", message: "The run was interrupted." }
const loopMessage: MessageError = {
  name: "limit",
  message: `The run was stopped: ${loopRefusalLimit} calls were refused because they only repeated earlier calls.`,
}

function noMoreCalls(number: number): string {
  const which = number === 1 ? "this is the only step" : `this is the last of ${number} steps`
  return `no further calls are possible: ${which}. Answer with text`
}

/**
 * Returns the status and error of a run whose signal has aborted. A timeout counts as a limit, and any other reason as
 * an interruption.
 */
function stopped({ reason }: AbortSignal): [RunStatus, MessageError] {
  if (reason instanceof TimeoutError) return ["limit", { name: "limit", message: reason.message }]
  return ["interrupted", abortedMessage]
}

function newMessage({ run, agent }: SessionAgent, user: UserMessage): AssistantMessage {
  const { session, model } = run
  return {
    id: newId("msg"),
    sessionID: session.id,
    role: "assistant",
    parentID: user.id,
    time: { created: currentTime() },
    agent: agent.name,
    model: model.info.ref,
    path: { cwd: session.directory, root: session.worktree },
    cost: 0,
    tokens: noTokens,
  }
}

/** One request to the model. */
interface Request {
  active: SessionAgent
  /** The message that the step answers. */
  user: UserMessage
  /** True if calls are forbidden. */
  isLast: boolean
}

/**
 * Streams one step into the processor, with retries after provider errors. Returns the error that ended the step, if
 * any.
 */
async function streamWithRetries(
  processor: StepProcessor,
  request: Request,
): Promise<MessageError | undefined> {
  const { engine, signal }: SessionRun = request.active.run
  for (let attempt = 1; ; attempt += 1) {
    try {
      await streamOnce(processor, request)
      return undefined
    } catch (error) {
      if (signal.aborted) return stopped(signal)[1]
      const delayMs =
        error instanceof ProviderError ? retryDelay(attempt, error, Math.random, engine.retry) : undefined
      if (delayMs === undefined) return describeFailure(error)
      await processor.reset()
      await processor.retry({ attempt, error: errorMessage(error), delayMs })
      try {
        await sleep(delayMs, signal)
      } catch {
        return stopped(signal)[1]
      }
    }
  }
}

async function streamOnce(processor: StepProcessor, { active, user, isLast }: Request): Promise<void> {
  const { run, agent } = active
  const { engine, model, history, signal } = run
  const hooked = await hookParams(engine.plugins, { model, user, agent }, signal)
  const events = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: await active.toPrompt(history),
    tools: active.tools(history).map(({ id, definition, schema }) => ({
      name: id,
      description: definition.description,
      inputSchema: schema,
    })),
    toolChoice: isLast ? "none" : "auto",
    cacheKey: user.sessionID,
    ...hooked,
    answerSchema: run.demand?.format,
    limits: engine.streamLimits,
    signal,
  })
  for await (const event of events) {
    const stored = processor.apply(event)
    if (stored) await stored
  }
}

function describeFailure(error: unknown): MessageError {
  const message = errorMessage(error)
  if (!(error instanceof ProviderError)) {
    // Errors that the user must fix and store errors are not step failures.
    if (error instanceof UsageError || StoreError.isThrown(error)) throw error
    return { name: "unknown", message }
  }
  const name = error.kind === "auth" || error.kind === "context-overflow" ? error.kind : "provider"
  return { name, message, status: error.status }
}
