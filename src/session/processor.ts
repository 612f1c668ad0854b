import type { Call } from "../call/call.ts"
import type { ModelInfo } from "../model/model.ts"
import type { StepEvent } from "../model/stream.ts"
import type { AssistantMessage, MessageError } from "../schema/message.ts"
import type {
  FinishReason,
  Part,
  RetryPart,
  StepFinishPart,
  StepStartPart,
  TextPart,
  Tokens,
  ToolPart,
} from "../schema/part.ts"
import { assertMove, describeEffect, fail, mayHaveActed, pending } from "../schema/tool-moves.ts"
import type { ToolState } from "../schema/tool-state.ts"
import type { CommitOptions } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { costOf } from "./budget.ts"
import type { Recorder } from "./recorder.ts"
import type { StepParts } from "./streamed-parts.ts"
import { createStreamedCalls, createStreamedTexts } from "./streamed-parts.ts"

/** One step of the model on its way into the store: turns stream events into parts, and call states into tool parts. */
export interface Processor {
  /** The message and its parts as they stand: the caller's history, not a copy. */
  readonly message: AssistantMessage
  readonly parts: Part[]
  /** Takes an event of the stream. Returns a promise where the next has to wait. */
  apply(event: StepEvent): Promise<void> | undefined
  /** The calls that the model made, in order, once the stream has ended. */
  calls(): Call[]
  /** Adds the calls that a call makes. The model did not write them, and reads of them in that call's result. */
  nest(parentCallID: string, calls: readonly Call[]): Promise<void>
  /**
   * A new state of a call. Refuses moves that its life does not have. It is stored when this resolves, with all that came
   * before, unless the call has done nothing yet.
   */
  setState(callID: string, state: ToolState): Promise<void>
  /** Resolves when everything so far is stored and announced. */
  stored(): Promise<void>
  /** Takes back what a failed attempt left. */
  reset(): Promise<void>
  /** The provider failed and the step will be tried again. */
  retry(failure: { attempt: number; error: string; delayMs: number }): Promise<void>
  /** Ends the message: open parts are closed, calls without an end become errors. */
  end(error?: MessageError): Promise<void>
}

/**
 * The processor of a new step. Its message and `step-start` are stored with the first thing that comes: an answer that
 * never began leaves nothing but its error.
 */
export function startStep(
  message: AssistantMessage,
  {
    recorder,
    model,
    completeText,
  }: {
    recorder: Recorder
    model: ModelInfo
    /** What stands in the place of a text that the model has ended. Default: the text. */
    completeText?(part: TextPart): Promise<string>
  },
): Processor {
  const parts: Part[] = []
  let reason: FinishReason | undefined
  let isStored = false

  const base = () => ({ id: newId("prt"), sessionID: message.sessionID, messageID: message.id })

  function add<P extends Part>(part: P): P {
    parts.push(part)
    return part
  }

  /** `ended`: the message itself has changed too. */
  function write(
    parts: readonly Part[],
    { ended = false, ...options }: { ended?: boolean } & CommitOptions = {},
  ): Promise<void> {
    return recorder.write({ ...withMessage(parts, ended), ...options })
  }

  /** For what the model says: nothing is lost that has been done, and what acts on it is stored after it. */
  function note(part: Part, ended = false): void {
    recorder.note(withMessage([part], ended))
  }

  function withMessage(parts: readonly Part[], ended = false) {
    const created = !isStored
    isStored = true
    return {
      messages: created || ended ? [{ ...message }] : [],
      created,
      parts: created ? [startPart, ...parts] : parts,
    }
  }

  async function setState(callID: string, state: ToolState): Promise<void> {
    const part = calls.get(callID)
    if (!part) throw new Error(`There is no call ${callID} in message ${message.id}.`)
    assertMove(part.state, state)
    const durable = hasActed(part.state) !== hasActed(state)
    part.state = state
    // What has done nothing yet has nothing to lose: it need not wait until that is stored.
    if (state.status === "running" && !hasActed(state)) note({ ...part })
    else await write([{ ...part }], { durable })
  }

  function finish(why: FinishReason, tokens: Tokens): void {
    reason = why
    message.finish = why
    message.tokens = tokens
    message.cost = costOf(tokens, model.cost)
    message.time = { ...message.time, completed: Date.now() }
    const part = add<StepFinishPart>({
      ...base(),
      type: "step-finish",
      reason: why,
      tokens,
      cost: message.cost,
    })
    note(part, true)
  }

  const step: StepParts = { base, add, note: (part) => note(part), delta: recorder.delta }
  const texts = createStreamedTexts(step, completeText)
  const calls = createStreamedCalls(step)
  const startPart = add<StepStartPart>({ ...base(), type: "step-start" })

  return {
    message,
    parts,
    setState,
    stored: () => write([]),
    apply(event) {
      switch (event.type) {
        case "text-start":
          texts.begin(event.id, { kind: "text", metadata: event.metadata })
          return undefined
        case "reasoning-start":
          texts.begin(event.id, { kind: "reasoning", metadata: event.metadata })
          return undefined
        case "text-delta":
        case "reasoning-delta":
          texts.grow(event.id, event.delta)
          return undefined
        case "text-end":
        case "reasoning-end":
          return texts.end(event.id, event.metadata)
        case "tool-start":
          calls.begin(event.callID, event.tool)
          return undefined
        case "tool-delta":
          calls.grow(event.callID, event.delta)
          return undefined
        case "tool-call": {
          const { callID: id, tool, input, metadata } = event
          calls.complete({ id, tool, input, ...(metadata ? { metadata } : {}) })
          return undefined
        }
        case "finish":
          finish(event.reason, event.tokens)
          return undefined
      }
    },
    calls: () => calls.pending({ cutOff: reason === "length" }),
    async nest(parentCallID, nested) {
      const added = nested.map(({ callID, tool, raw }) => {
        const part = add<ToolPart>({
          ...base(),
          type: "tool",
          callID,
          tool,
          parentCallID,
          state: pending(raw),
        })
        calls.nest(part)
        return part
      })
      await write(added.map((part) => ({ ...part })))
    },
    async reset() {
      const left: Part[] = parts.filter((part) => part.type !== "step-start" && part.type !== "retry")
      parts.splice(0, parts.length, ...parts.filter((part) => !left.includes(part)))
      calls.clear()
      texts.clear()
      if (left.length > 0) await recorder.removeParts(left)
    },
    async retry(failure) {
      const part = add<RetryPart>({ ...base(), type: "retry", ...failure, time: { created: Date.now() } })
      await write([part])
    },
    async end(error) {
      texts.closeAll()
      for (const { callID, state } of calls.all()) {
        if (state.status === "completed" || state.status === "error") continue
        const text =
          state.status === "pending"
            ? "This call was not run: the answer was interrupted."
            : `This call was interrupted. ${describeEffect(state)}`
        await setState(callID, fail(state, { error: text, metadata: { kind: "aborted" } }, Date.now()))
      }
      if (message.time.completed !== undefined && !error) {
        await write([])
        return
      }
      message.time = { ...message.time, completed: Date.now() }
      if (error) message.error = error
      await write([], { ended: true })
    },
  }
}

/** True while a call works of which nobody could say after a crash what it has done: its begin and end are synced. */
function hasActed(state: ToolState): boolean {
  return state.status === "running" && mayHaveActed(state)
}
