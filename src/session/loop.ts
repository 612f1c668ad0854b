import { type CallHost, newTurn, type Turn } from "../call/call.ts"
import { runCalls } from "../call/schedule.ts"
import type { RunStatus, Usage } from "../event/events.ts"
import { ProviderError } from "../model/errors.ts"
import type { Model } from "../model/model.ts"
import { type RetryLimits, retryDelay } from "../model/retry.ts"
import { type StreamLimits, streamStep } from "../model/stream.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { AssistantMessage, MessageError, MessageWithParts, UserMessage } from "../schema/message.ts"
import type { TextPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Handover } from "../tool/tool.ts"
import { sleep, TimeoutError } from "../util/abort.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import type { AnswerDemand } from "./answer-demand.ts"
import { type Budget, limitReached, type SharedBudget, stepsMessage } from "./budget.ts"
import type { ContextRoom } from "./context-room.ts"
import { addUsage, noTokens, sumUsage } from "./cost.ts"
import { hookParams, hookText } from "./plugin-hooks.ts"
import { type Processor, startStep } from "./processor.ts"
import type { Recorder } from "./recorder.ts"
import type { Worker } from "./worker.ts"

/** Refused loops in one turn that end the run. */
const loopRefusalLimit = 3

/** What one prompt needs, resolved. */
export interface LoopInput {
  session: Session
  /** Who begins. */
  worker: Worker
  model: Model
  user: UserMessage
  /** The session so far, the new user message last. The loop appends to it. */
  history: MessageWithParts[]
  /** What the prompt may use. The step after that is the last. */
  budget: Budget
  /** Of the run that this prompt works for. */
  shared?: SharedBudget | undefined
  /** What others used for this prompt so far: its subagents, and summaries. */
  spentElsewhere(): Usage
  limits: StreamLimits
  retry: RetryLimits
  recorder: Recorder
  room: ContextRoom
  /** What the answer has to be. */
  demand?: AnswerDemand
  /** Appends a message in the person's place to the history, and returns it. */
  tell(text: string): Promise<UserMessage>
  plugins?: PluginHost | undefined
  /** Makes the session another agent's. Appends the message that says so to the history, and returns it. */
  handOver(handover: Handover): Promise<UserMessage>
  /** The agent of that name, ready to work. */
  workAs(agent: string): Promise<Worker>
  signal: AbortSignal
}

/** How a loop ended. `error`: why, where it was not the model that ended it. */
export interface LoopResult {
  status: RunStatus
  error?: MessageError
  turn: Turn
  /** The assistant messages of this prompt. */
  messages: AssistantMessage[]
}

/**
 * Asks the model, runs its calls, asks again, until it stops calling. A call may hand the next step to another agent. The last step the limit leaves forbids calls.
 * Never rejects for what a model, provider or tool does; rejects when the store refuses to write.
 */
export async function runLoop(input: LoopInput): Promise<LoopResult> {
  const turn = newTurn()
  const messages: AssistantMessage[] = []
  const { budget } = input
  let { worker, user } = input
  const result = (status: RunStatus, error?: MessageError): LoopResult => ({
    status,
    turn,
    messages,
    ...(error ? { error } : {}),
  })

  for (let step = 1; step <= budget.maxSteps; step += 1) {
    await input.room.beforeStep()
    const used = addUsage([sumUsage(messages), input.spentElsewhere()])
    input.shared?.used(used)
    const limit = limitReached(budget, step, used) ?? input.shared?.limit()
    const last = limit !== undefined
    const processor = startStep(newMessage(input, worker, user), {
      recorder: input.recorder,
      model: input.model.info,
      ...(input.plugins?.has("text.complete")
        ? { completeText: (part: TextPart) => hookText(input.plugins, part, input.signal) }
        : {}),
    })
    messages.push(processor.message)

    const failure = await streamWithRetries(processor, { ...input, worker, user }, last)
    input.history.push({ message: processor.message, parts: processor.parts })
    if (failure) {
      await processor.end(failure)
      if (input.signal.aborted) return result(...stopped(input.signal))
      if (failure.name === "context-overflow" && !last && (await input.room.afterOverflow())) continue
      return result("failed", failure)
    }

    const calls = processor.calls()
    const offered = new Map(worker.tools(input.history).map((tool) => [tool.id, tool]))
    const host: CallHost = {
      ...worker.host({ messageID: processor.message.id, turn, offered }),
      onState: (callID, state) => processor.setState(callID, state),
      announced: () => processor.stored(),
      onNested: (parentCallID, nested) => processor.nest(parentCallID, nested),
    }
    if (last)
      host.closed = `no calls are possible any more: ${
        step === 1 ? "the first step is the last" : `this is the last of ${step} steps`
      }. Answer in words`
    await runCalls(calls, host)
    await processor.end(input.signal.aborted ? stopped(input.signal)[1] : undefined)
    if (turn.handover) user = await input.handOver(turn.handover)
    delete turn.handover

    if (input.signal.aborted) return result(...stopped(input.signal))
    if (turn.loopRefusals >= loopRefusalLimit) return result("limit", loopMessage)
    const verdict = input.demand?.judge(processor.parts)
    if (last) return result("limit", limit)
    if (verdict?.kind === "failed") return result("failed", verdict.error)
    if (verdict?.kind === "retry") user = await input.tell(verdict.message)
    else if (verdict ? verdict.kind === "met" : calls.length === 0) return result("completed")
    if (user.agent !== worker.agent.name || !worker.isCurrent()) worker = await input.workAs(user.agent)
  }
  return result("limit", stepsMessage(budget.maxSteps))
}

const abortedMessage: MessageError = { name: "aborted", message: "The run was interrupted." }
const loopMessage: MessageError = {
  name: "limit",
  message: `The run was stopped: ${loopRefusalLimit} calls were refused because they only repeated earlier ones.`,
}

/** How a run ends whose signal fired: a limit of time is a limit like others, all else is an interruption. */
function stopped({ reason }: AbortSignal): [RunStatus, MessageError] {
  if (reason instanceof TimeoutError) return ["limit", { name: "limit", message: reason.message }]
  return ["interrupted", abortedMessage]
}

function newMessage({ session, model }: LoopInput, { agent }: Worker, user: UserMessage): AssistantMessage {
  return {
    id: newId("msg"),
    sessionID: session.id,
    role: "assistant",
    parentID: user.id,
    time: { created: Date.now() },
    agent: agent.name,
    model: model.info.ref,
    path: { cwd: session.directory, root: session.worktree },
    cost: 0,
    tokens: noTokens,
  }
}

/** Streams one step into the processor. Returns what ended it, or nothing where it went well. */
async function streamWithRetries(
  processor: Processor,
  input: LoopInput,
  last: boolean,
): Promise<MessageError | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await streamOnce(processor, input, last)
      return undefined
    } catch (error) {
      if (input.signal.aborted) return stopped(input.signal)[1]
      const delayMs =
        error instanceof ProviderError ? retryDelay(attempt, error, Math.random, input.retry) : undefined
      if (delayMs === undefined) return describeFailure(error)
      await processor.reset()
      await processor.retry({ attempt, error: errorMessage(error), delayMs })
      try {
        await sleep(delayMs, input.signal)
      } catch {
        return stopped(input.signal)[1]
      }
    }
  }
}

async function streamOnce(processor: Processor, input: LoopInput, last: boolean): Promise<void> {
  const { worker, model, demand, signal, limits } = input
  const { agent } = worker
  const { temperature } = agent
  const events = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: await worker.toPrompt(input.history),
    tools: worker.tools(input.history).map(({ id, definition, schema }) => ({
      name: id,
      description: definition.description,
      inputSchema: schema,
    })),
    toolChoice: last ? "none" : "auto",
    cacheKey: input.user.sessionID,
    ...(await hookParams(input.plugins, { model, user: input.user, agent: agent.name, temperature }, signal)),
    ...(demand?.format === undefined ? {} : { answerSchema: demand.format }),
    limits,
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
    // What the person has to mend, and what cannot be recorded, is no failure of the step.
    if (error instanceof UsageError || (TackleError.isInstance(error) && error.code === "store")) throw error
    return { name: "unknown", message }
  }
  const name = error.kind === "auth" || error.kind === "context-overflow" ? error.kind : "provider"
  return { name, message, ...(error.status === undefined ? {} : { status: error.status }) }
}
