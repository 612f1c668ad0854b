import type { Call } from "../call/call.ts"
import type { Part, ReasoningPart, TextPart, ToolPart } from "../schema/part.ts"
import { pending } from "../schema/tool-moves.ts"
import { isRecord } from "../util/json.ts"
import { currentTime } from "../util/time.ts"

/** The text and reasoning blocks of one step, by their ids in the stream. */
export interface StreamedTexts {
  begin(id: string, block: TextBlock): void
  grow(id: string, delta: string): void
  /** Ends a block. Returns a promise if `completeText` replaces its text first. */
  end(id: string, metadata?: Record<string, unknown>): Promise<void> | undefined
  /** Closes interrupted blocks with the text received so far. */
  closeAll(): void
  /** Discards all blocks after a failed attempt. */
  clear(): void
}

/** A block that has started. */
interface TextBlock {
  kind: "text" | "reasoning"
  metadata?: Record<string, unknown> | undefined
}

/**
 * Creates the text and reasoning blocks of a step. Empty blocks create no parts, except reasoning with metadata.
 * `completeText` returns the replacement for completed text.
 */
export function createStreamedTexts(
  { base, add, note, delta }: StepParts,
  completeText?: (part: TextPart) => Promise<string>,
): StreamedTexts {
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
    begin: (id, block) => void begun.set(id, block),
    grow(id, text) {
      const known = open.get(id)
      const part = known ?? openText(id)
      part.text += text
      // The part is first announced without text. The text follows as deltas.
      if (!known) note({ ...part, text: "" })
      delta(part.id, "text", text)
    },
    end(id, metadata) {
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
    closeAll() {
      for (const id of [...open.keys()]) close(id)
    },
    clear() {
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

/**
 * The calls of one step. Each call receives an id that is unique in the history, because some servers repeat ids within
 * an answer or in the next answer.
 */
export interface StreamedCalls {
  /** Starts a call. */
  begin(id: string, tool: string): void
  /** Appends to the arguments of the last call with this id. */
  grow(id: string, delta: string): void
  /** Sets the complete arguments of a call. */
  complete(call: { id: string; tool: string; input: string; metadata?: ToolPart["metadata"] }): void
  /** Adds a nested call that another call makes. */
  nest(part: ToolPart): void
  get(callID: string): ToolPart | undefined
  all(): ToolPart[]
  /**
   * Returns the calls to run, in order. `cutOff` is true if the answer reached its output limit, possibly inside a
   * call.
   */
  pending(options: { cutOff: boolean }): Call[]
  /** Discards all calls after a failed attempt. */
  clear(): void
}

/** A call in the stream. `whole` means that its arguments are complete. */
interface StreamedCall {
  part: ToolPart
  whole: boolean
}

/** Creates an empty collection for the calls of a step. Each call that is added becomes a part of the message. */
export function createStreamedCalls({ base, add, note, delta, isUsed }: StepParts): StreamedCalls {
  const calls = new Map<string, ToolPart>()
  /** Calls by the ids that the provider gave them. */
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
    begin(id, tool) {
      const { part } = open(id, tool)
      // Uses a separate state object, because deltas extend the original and an announced state must not change.
      note({ ...part, state: pending() })
    },
    grow(id, text) {
      const part = given.get(id)?.at(-1)?.part
      if (part?.state.status !== "pending") return
      part.state.raw += text
      delta(part.id, "raw", text)
    },
    complete({ id, tool, input, metadata }) {
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
    nest: (part) => void calls.set(part.callID, part),
    get: (callID) => calls.get(callID),
    all: () => [...calls.values()],
    pending({ cutOff }) {
      return [...calls.values()].flatMap(({ callID, tool, state, metadata }) => {
        if (state.status !== "pending") return []
        const cut = cutOff && !isWhole(state.raw)
        return [{ callID, tool, raw: state.raw, cut, repaired: repairedBefore(metadata) }]
      })
    },
    clear() {
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
