import type { Call } from "../call/call.ts"
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
  Tokens,
  ToolPart,
} from "../schema/part.ts"
import { assertMove, describeEffect, fail, mayHaveActed, pending } from "../schema/tool-moves.ts"
import type { ToolState } from "../schema/tool-state.ts"
import type { CommitOptions } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import { costOf } from "./cost.ts"
import type { Recorder } from "./recorder.ts"

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
  const calls = new Map<string, ToolPart>()
  /** The calls under the ids that the provider gave them: some servers give all calls of an answer the same. */
  const given = new Map<string, StreamedCall[]>()
  const texts = new Map<string, TextPart | ReasoningPart>()
  /** Ids of text blocks that began and have no text so far: an empty block leaves no part. */
  const begun = new Map<string, { kind: "text" | "reasoning"; metadata?: Record<string, unknown> }>()
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

  function openText(id: string, at: number): TextPart | ReasoningPart {
    const { kind, metadata } = begun.get(id) ?? { kind: "text" }
    const part = add<TextPart | ReasoningPart>({ ...base(), type: kind, text: "", time: { start: at } })
    if (metadata) part.metadata = metadata
    texts.set(id, part)
    return part
  }

  function addDelta(id: string, delta: string): void {
    const known = texts.get(id)
    const part = known ?? openText(id, Date.now())
    part.text += delta
    // The part's first state is announced empty, its text follows as deltas.
    if (!known) note({ ...part, text: "" } as Part)
    recorder.delta(part.id, "text", delta)
  }

  function closeText(id: string, metadata?: Record<string, unknown>): void {
    begun.delete(id)
    const part = texts.get(id)
    if (!part) return
    texts.delete(id)
    part.time = { start: part.time?.start ?? Date.now(), end: Date.now() }
    if (metadata) part.metadata = metadata
    note(part)
  }

  /** Of a text that the model itself has ended. What is cut off is stored as it came. */
  function endText(id: string, metadata?: Record<string, unknown>): Promise<void> | undefined {
    const part = texts.get(id)
    if (!completeText || part?.type !== "text") {
      closeText(id, metadata)
      return undefined
    }
    return completeText(part).then((text) => {
      part.text = text
      closeText(id, metadata)
    })
  }

  function openCall(id: string, tool: string): StreamedCall {
    const callID = uniqueCallID(id)
    const part: ToolPart = add({ ...base(), type: "tool", callID, tool, state: pending() })
    const call = { part, whole: false }
    calls.set(callID, part)
    given.set(id, [...(given.get(id) ?? []), call])
    return call
  }

  function uniqueCallID(id: string): string {
    let callID = id
    for (let count = 2; calls.has(callID); count += 1) callID = `${id}_${count}`
    return callID
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

  const startPart = add<StepStartPart>({ ...base(), type: "step-start" })

  return {
    message,
    parts,
    setState,
    stored: () => write([]),
    apply(event) {
      switch (event.type) {
        case "text-start":
        case "reasoning-start":
          begun.set(event.id, {
            kind: event.type === "text-start" ? "text" : "reasoning",
            ...(event.metadata ? { metadata: event.metadata } : {}),
          })
          return undefined
        case "text-delta":
        case "reasoning-delta":
          addDelta(event.id, event.delta)
          return undefined
        case "text-end":
          return endText(event.id, event.metadata)
        case "reasoning-end":
          closeText(event.id, event.metadata)
          return undefined
        case "tool-start": {
          const { part } = openCall(event.callID, event.tool)
          // A state of its own: ours grows with the deltas, and what was announced must not.
          note({ ...part, state: pending() })
          return undefined
        }
        case "tool-delta": {
          const part = given.get(event.callID)?.at(-1)?.part
          if (part?.state.status !== "pending") return undefined
          part.state.raw += event.delta
          recorder.delta(part.id, "raw", event.delta)
          return undefined
        }
        case "tool-call": {
          const known = given.get(event.callID)?.find(({ whole }) => !whole)
          const call = known ?? openCall(event.callID, event.tool)
          const { part } = call
          call.whole = true
          part.tool = event.tool
          part.state = pending(event.input)
          if (event.metadata) part.metadata = event.metadata
          // What streamed in was announced as it came; the next state of the call stores it.
          if (!known) note({ ...part })
          return undefined
        }
        case "finish":
          finish(event.reason, event.tokens)
          return undefined
      }
    },
    calls() {
      return [...calls.values()].flatMap(({ callID, tool, state, metadata }) => {
        if (state.status !== "pending") return []
        const cut = reason === "length" && !isWhole(state.raw)
        const repaired = repairedBefore(metadata)
        return [{ callID, tool, raw: state.raw, cut, ...(repaired !== undefined && { repaired }) }]
      })
    },
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
        calls.set(callID, part)
        return part
      })
      await write(added.map((part) => ({ ...part })))
    },
    async reset() {
      const left: Part[] = parts.filter((part) => part.type !== "step-start" && part.type !== "retry")
      parts.splice(0, parts.length, ...parts.filter((part) => !left.includes(part)))
      calls.clear()
      given.clear()
      texts.clear()
      begun.clear()
      if (left.length > 0) await recorder.removeParts(left)
    },
    async retry(failure) {
      const part = add<RetryPart>({ ...base(), type: "retry", ...failure, time: { created: Date.now() } })
      await write([part])
    },
    async end(error) {
      const open = [...texts.keys()]
      for (const id of open) closeText(id)
      for (const [callID, { state }] of calls) {
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

/** A call on its way in. `whole`: the provider has said that its arguments are complete. */
interface StreamedCall {
  part: ToolPart
  whole: boolean
}

/** What was mended while the call was read from a text: the note that `model/synthetic/` leaves. */
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
