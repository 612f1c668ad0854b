import type { Call } from "../call/context.ts"
import { endedEarly } from "../model/finish-reason.ts"
import type { ModelInfo } from "../model/model.ts"
import type { StepEvent } from "../model/stream.ts"
import type { AssistantMessage, MessageError } from "../schema/message.ts"
import type {
  FinishReason,
  Part,
  ReasoningPart,
  RetryPart,
  StepFinishPart,
  StepStartPart,
  TextPart,
  ToolPart,
} from "../schema/part.ts"
import { assertMove, describeEffect, fail, mayHaveActed, pending } from "../schema/tool-moves.ts"
import type { ToolState } from "../schema/tool-state.ts"
import type { CommitOptions } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import { currentTime } from "../util/time.ts"
import { costOf } from "./budget.ts"
import type { Recorder } from "./recorder.ts"

/** Stores one model step. Converts stream events to parts, and call states to tool parts. */
export interface StepProcessor {
  /** The current message and its parts. The caller's history contains the same objects. */
  readonly message: AssistantMessage
  readonly parts: Part[]
  /** Applies a stream event. If the result is a promise, wait for the promise before you apply the next event. */
  apply(event: StepEvent): Promise<void> | undefined
  /** Returns the model's calls in order. Must be called after the stream has ended. */
  calls(): Call[]
  /** Adds the nested calls of a call. The model sees them only in the result of the outer call. */
  nest(parentCallID: string, calls: readonly Call[]): Promise<void>
  /**
   * Sets the state of a call. Resolves when the new state and all earlier changes are stored. For a running call that
   * has had no effects yet, resolves immediately. Rejects if the transition is invalid.
   */
  setState(callID: string, state: ToolState): Promise<void>
  /** Resolves when all changes so far are stored and announced. */
  stored(): Promise<void>
  /** Removes the parts of a failed attempt. */
  reset(): Promise<void>
  /** Records that the provider failed and that the step will be retried. */
  retry(failure: { attempt: number; error: string; delayMs: number }): Promise<void>
  /**
   * Ends the message: closes open parts and turns unfinished calls into errors. If `waits` is false, a complete message
   * is not stored immediately, but when the run's lease is released.
   */
  end(error?: MessageError, options?: { waits?: boolean }): Promise<void>
}

/**
 * Starts the processor for a step. The message and its `step-start` part are stored with the first event, or with the
 * error if the answer never starts.
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

  function finish({ reason: why, raw, tokens }: Extract<StepEvent, { type: "finish" }>): void {
    reason = why
    message.finish = why
    if (raw !== undefined) message.rawFinish = raw
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
        case "tool-call":
          calls.complete(event)
          return undefined
        case "finish":
          finish(event)
          return undefined
      }
    },
    calls: () => calls.pending({ cutOff: endedEarly(reason) }),
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
    async end(error, { waits = true } = {}) {
      texts.closeAll()
      for (const { callID, state } of calls.all()) {
        if (state.status === "completed" || state.status === "error") continue
        const text =
          state.status === "pending"
            ? "This call did not run, because the answer was interrupted."
            : `This call was interrupted. ${describeEffect(state)}`
        await setState(callID, fail(state, { error: text, metadata: { kind: "aborted" } }, currentTime()))
      }
      if (message.time.completed !== undefined && !error) {
        if (waits) await write([])
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

/** A text or reasoning block that has started. */
interface TextBlock {
  kind: "text" | "reasoning"
  metadata?: Record<string, unknown> | undefined
}

/**
 * Creates an empty collection for a step's text and reasoning blocks, keyed by their ids in the stream. Empty blocks
 * create no parts, except reasoning with metadata. `completeText` returns the replacement for completed text.
 */
function createStreamedTexts(
  { base, add, note, delta }: StepParts,
  completeText?: (part: TextPart) => Promise<string>,
) {
  const open = new Map<string, TextPart | ReasoningPart>()
  /** Blocks that have no text yet. */
  const begun = new Map<string, TextBlock>()

  function openText(id: string): TextPart | ReasoningPart {
    const { kind, metadata } = begun.get(id) ?? { kind: "text" }
    const part = add<TextPart | ReasoningPart>({
      ...base(),
      type: kind,
      text: "",
      time: { start: currentTime() },
    })
    if (metadata) part.metadata = metadata
    open.set(id, part)
    return part
  }

  function close(id: string, metadata?: Record<string, unknown>): void {
    // Hidden reasoning has no text, but the provider needs its metadata in later requests.
    const isHidden = metadata !== undefined && begun.get(id)?.kind === "reasoning"
    const part = open.get(id) ?? (isHidden ? openText(id) : undefined)
    begun.delete(id)
    if (!part) return
    open.delete(id)
    part.time = { start: part.time?.start ?? currentTime(), end: currentTime() }
    if (metadata) part.metadata = metadata
    note(part)
  }

  return {
    begin: (id: string, block: TextBlock) => void begun.set(id, block),
    grow(id: string, text: string): void {
      const known = open.get(id)
      const part = known ?? openText(id)
      part.text += text
      // The part is first announced without text. The text follows as deltas.
      if (!known) note({ ...part, text: "" })
      delta(part.id, "text", text)
    },
    /** Ends a block. Returns a promise if `completeText` replaces its text first. */
    end(id: string, metadata?: Record<string, unknown>): Promise<void> | undefined {
      const part = open.get(id)
      if (completeText && part?.type === "text") {
        return completeText(part).then((text) => {
          part.text = text
          close(id, metadata)
        })
      }
      close(id, metadata)
      return undefined
    },
    /** Closes interrupted blocks with the text received so far. */
    closeAll(): void {
      for (const id of [...open.keys()]) close(id)
    },
    /** Discards all blocks after a failed attempt. */
    clear(): void {
      open.clear()
      begun.clear()
    },
  }
}

/** Adds the parts of the model's stream to the message and the store. */
export interface StepParts {
  /** Returns the fields of every new part of the message. */
  base(): Pick<Part, "id" | "sessionID" | "messageID">
  /** Appends a part that may still grow. Stores nothing. */
  add<P extends Part>(part: P): P
  /** Stores a part in its current state. The given object must not change afterwards. */
  note(part: Part): void
  /** Returns true if an earlier message has a call with this id. */
  isUsed(callID: string): boolean
  /** Announces text that was appended to a part. */
  delta(partID: string, field: "text" | "raw", delta: string): void
}

/** A call in the stream. `whole` means that its arguments are complete. */
interface StreamedCall {
  part: ToolPart
  whole: boolean
}

/**
 * Creates an empty collection for a step's calls. Each call that is added becomes a part of the message, with an id
 * that is unique in the history, because some servers repeat ids within an answer or in the next answer.
 */
function createStreamedCalls({ base, add, note, delta, isUsed }: StepParts) {
  const calls = new Map<string, ToolPart>()
  /** Calls keyed by the ids that the provider assigned. */
  const given = new Map<string, StreamedCall[]>()

  function open(id: string, tool: string): StreamedCall {
    const callID = uniqueID(id)
    const part: ToolPart = add({ ...base(), type: "tool", callID, tool, state: pending() })
    const call = { part, whole: false }
    calls.set(callID, part)
    given.set(id, [...(given.get(id) ?? []), call])
    return call
  }

  function uniqueID(id: string): string {
    let callID = id
    for (let count = 2; calls.has(callID) || isUsed(callID); count += 1) callID = `${id}_${count}`
    return callID
  }

  return {
    begin(id: string, tool: string): void {
      const { part } = open(id, tool)
      // Uses a separate state object, because deltas extend the original and an announced state must not change.
      note({ ...part, state: pending() })
    },
    /** Appends to the arguments of the latest call with this id. */
    grow(id: string, text: string): void {
      const part = given.get(id)?.at(-1)?.part
      if (part?.state.status !== "pending") return
      part.state.raw += text
      delta(part.id, "raw", text)
    },
    /** Sets the complete arguments of a call. */
    complete({ callID: id, tool, input, metadata }: Extract<StepEvent, { type: "tool-call" }>): void {
      const known = given.get(id)?.find(({ whole }) => !whole)
      const call = known ?? open(id, tool)
      const { part } = call
      call.whole = true
      part.tool = tool
      part.state = pending(input)
      if (metadata) part.metadata = metadata
      // Streamed arguments are already announced. The next state of the call stores them.
      if (!known) note({ ...part })
    },
    /** Adds a call that another call makes. */
    nest: (part: ToolPart) => void calls.set(part.callID, part),
    get: (callID: string) => calls.get(callID),
    all: () => [...calls.values()],
    /**
     * Returns the calls to run, in order. `cutOff` is true if the answer ended early, possibly inside a call.
     */
    pending({ cutOff }: { cutOff: boolean }): Call[] {
      return [...calls.values()].flatMap(({ callID, tool, state, metadata }) => {
        if (state.status !== "pending") return []
        const cut = cutOff && !isWhole(state.raw)
        return [{ callID, tool, raw: state.raw, cut, repaired: repairedBefore(metadata) }]
      })
    },
    /** Discards all calls after a failed attempt. */
    clear(): void {
      calls.clear()
      given.clear()
    },
  }
}

/** Returns the note that `synthetic/` adds to a call that it repaired while it parsed the model's text. */
function repairedBefore(metadata: ToolPart["metadata"]): string | undefined {
  const note = metadata?.tackle
  return isRecord(note) && typeof note.repaired === "string" ? note.repaired : undefined
}

function isWhole(raw: string): boolean {
  try {
    JSON.parse(raw)
    return true
  } catch {
    return false
  }
}
