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
import { currentTime } from "../util/time.ts"
import { costOf } from "./budget.ts"
import type { Recorder } from "./recorder.ts"
import { createStreamedCalls, createStreamedTexts, type StepParts } from "./streamed-parts.ts"

/** Stores one step of the model. Converts stream events to parts, and call states to tool parts. */
export interface StepProcessor {
  /** The current message and its parts. The caller's history contains the same objects. */
  readonly message: AssistantMessage
  readonly parts: Part[]
  /** Applies a stream event. If it returns a promise, wait for it before you apply the next event. */
  apply(event: StepEvent): Promise<void> | undefined
  /** Returns the model's calls in order. Must be called after the stream has ended. */
  calls(): Call[]
  /** Adds the nested calls of a call. The model sees them only in the result of the outer call. */
  nest(parentCallID: string, calls: readonly Call[]): Promise<void>
  /**
   * Sets the state of a call. Rejects invalid transitions. Resolves when the new state and all earlier changes are
   * stored. For a running call that has had no effects yet, resolves immediately.
   */
  setState(callID: string, state: ToolState): Promise<void>
  /** Resolves when all changes so far are stored and announced. */
  stored(): Promise<void>
  /** Removes the parts of a failed attempt. */
  reset(): Promise<void>
  /** Records that the provider failed and that the step will be retried. */
  retry(failure: { attempt: number; error: string; delayMs: number }): Promise<void>
  /** Ends the message: closes open parts and turns unfinished calls into errors. */
  end(error?: MessageError): Promise<void>
}

/**
 * Starts the processor of a step. The message and its `step-start` are stored with the first event, so if the answer
 * never starts, only its error is stored.
 */
export function startStep(
  message: AssistantMessage,
  {
    recorder,
    model,
    completeText,
    isUsed = () => false,
  }: {
    recorder: Recorder
    model: ModelInfo
    /** Returns true if an earlier message has a call with this id. Default: always false. */
    isUsed?(callID: string): boolean
    /** Returns the replacement for completed text from the model. Default: the text does not change. */
    completeText?(part: TextPart): Promise<string>
  },
): StepProcessor {
  const parts: Part[] = []
  let reason: FinishReason | undefined
  let isStored = false

  const base = () => ({ id: newId("prt"), sessionID: message.sessionID, messageID: message.id })

  function add<P extends Part>(part: P): P {
    parts.push(part)
    return part
  }

  /** Stores parts. If `ended` is true, also stores the message, because its end has been set. */
  function write(
    parts: readonly Part[],
    { ended = false, ...options }: { ended?: boolean } & CommitOptions = {},
  ): Promise<void> {
    return recorder.write({ ...withMessage(parts, ended), ...options })
  }

  /** Stores the model's output without waiting. Everything that depends on this output is stored later. */
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
    if (!part) throw new Error(`Unknown call ${callID} in message ${message.id}.`)
    assertMove(part.state, state)
    const durable = hasActed(part.state) !== hasActed(state)
    part.state = state
    // If the process crashes now, nothing is lost, because the call has had no effects. The call therefore does not
    // wait for the store.
    if (state.status === "running" && !hasActed(state)) note({ ...part })
    else await write([{ ...part }], { durable })
  }

  function finish(why: FinishReason, tokens: Tokens): void {
    reason = why
    message.finish = why
    message.tokens = tokens
    message.cost = costOf(tokens, model.cost)
    message.time = { ...message.time, completed: currentTime() }
    const part = add<StepFinishPart>({
      ...base(),
      type: "step-finish",
      reason: why,
      tokens,
      cost: message.cost,
    })
    note(part, true)
  }

  const step: StepParts = { base, add, note: (part) => note(part), isUsed, delta: recorder.delta }
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
          calls.complete({ id, tool, input, metadata })
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
      const part = add<RetryPart>({ ...base(), type: "retry", ...failure, time: { created: currentTime() } })
      await write([part])
    },
    async end(error) {
      texts.closeAll()
      for (const { callID, state } of calls.all()) {
        if (state.status === "completed" || state.status === "error") continue
        const text =
          state.status === "pending"
            ? "This call was not run, because the answer was interrupted."
            : `This call was interrupted. ${describeEffect(state)}`
        await setState(callID, fail(state, { error: text, metadata: { kind: "aborted" } }, currentTime()))
      }
      if (message.time.completed !== undefined && !error) {
        await write([])
        return
      }
      message.time = { ...message.time, completed: currentTime() }
      if (error) message.error = error
      await write([], { ended: true })
    },
  }
}

/**
 * Returns true for a running call whose effects would be unknown after a crash. The start and end of such a call are
 * synced to disk.
 */
function hasActed(state: ToolState): boolean {
  return state.status === "running" && mayHaveActed(state)
}
