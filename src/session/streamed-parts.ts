import type { Call } from "../call/call.ts"
import type { Part, ReasoningPart, TextPart, ToolPart } from "../schema/part.ts"
import { pending } from "../schema/tool-moves.ts"
import { isRecord } from "../util/json.ts"

/** The texts and thoughts of one step, by the ids of their blocks in the stream. */
export interface StreamedTexts {
  begin(id: string, block: TextBlock): void
  grow(id: string, delta: string): void
  /** The model has ended it. A promise where something else is to stand in its place first. */
  end(id: string, metadata?: Record<string, unknown>): Promise<void> | undefined
  /** Closes what was cut off, as it came. */
  closeAll(): void
  /** Forgets all: the attempt failed. */
  clear(): void
}

/** A block that has begun. */
interface TextBlock {
  kind: "text" | "reasoning"
  metadata?: Record<string, unknown> | undefined
}

/** An empty block leaves no part. `completeText`: what stands in the place of a text that the model has ended. */
export function createStreamedTexts(
  { base, add, note, delta }: StepParts,
  completeText?: (part: TextPart) => Promise<string>,
): StreamedTexts {
  const open = new Map<string, TextPart | ReasoningPart>()
  /** Those that have no text so far. */
  const begun = new Map<string, TextBlock>()

  function openText(id: string): TextPart | ReasoningPart {
    const { kind, metadata } = begun.get(id) ?? { kind: "text" }
    const part = add<TextPart | ReasoningPart>({
      ...base(),
      type: kind,
      text: "",
      time: { start: Date.now() },
    })
    if (metadata) part.metadata = metadata
    open.set(id, part)
    return part
  }

  function close(id: string, metadata?: Record<string, unknown>): void {
    begun.delete(id)
    const part = open.get(id)
    if (!part) return
    open.delete(id)
    part.time = { start: part.time?.start ?? Date.now(), end: Date.now() }
    if (metadata) part.metadata = metadata
    note(part)
  }

  return {
    begin: (id, block) => void begun.set(id, block),
    grow(id, text) {
      const known = open.get(id)
      const part = known ?? openText(id)
      part.text += text
      // The part's first state is announced empty, its text follows as deltas.
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

/** Where what the model streams goes: into the parts of its message, and into the record. */
export interface StepParts {
  /** What every new part of the message has. */
  base(): Pick<Part, "id" | "sessionID" | "messageID">
  /** Appends a part, which may grow from then on. Nothing is recorded. */
  add<P extends Part>(part: P): P
  /** Records a part as it is now: it does not change afterwards. */
  note(part: Part): void
  /** Announces what a part has grown by. */
  delta(partID: string, field: "text" | "raw", delta: string): void
}

/** The calls of one step, each with an id of its own: some servers give all calls of an answer the same. */
export interface StreamedCalls {
  /** A call begins to come in. */
  begin(id: string, tool: string): void
  /** More of the arguments of the last call of this id. */
  grow(id: string, delta: string): void
  /** The provider has said that a call is complete. */
  complete(call: { id: string; tool: string; input: string; metadata?: ToolPart["metadata"] }): void
  /** Adds a call that did not come from the model. */
  nest(part: ToolPart): void
  get(callID: string): ToolPart | undefined
  all(): ToolPart[]
  /** Those to be run, in order. `cutOff`: the answer ended at its limit, perhaps within a call. */
  pending(options: { cutOff: boolean }): Call[]
  /** Forgets all: the attempt failed. */
  clear(): void
}

/** A call on its way in. `whole`: the provider has said that its arguments are complete. */
interface StreamedCall {
  part: ToolPart
  whole: boolean
}

/** No calls yet. Each that comes in becomes a part of the message. */
export function createStreamedCalls({ base, add, note, delta }: StepParts): StreamedCalls {
  const calls = new Map<string, ToolPart>()
  /** Under the ids that the provider gave them. */
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
    for (let count = 2; calls.has(callID); count += 1) callID = `${id}_${count}`
    return callID
  }

  return {
    begin(id, tool) {
      const { part } = open(id, tool)
      // A state of its own: ours grows with the deltas, and what was announced must not.
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
      // What streamed in was announced as it came; the next state of the call stores it.
      if (!known) note({ ...part })
    },
    nest: (part) => void calls.set(part.callID, part),
    get: (callID) => calls.get(callID),
    all: () => [...calls.values()],
    pending({ cutOff }) {
      return [...calls.values()].flatMap(({ callID, tool, state, metadata }) => {
        if (state.status !== "pending") return []
        const cut = cutOff && !isWhole(state.raw)
        const repaired = repairedBefore(metadata)
        return [{ callID, tool, raw: state.raw, cut, ...(repaired !== undefined && { repaired }) }]
      })
    },
    clear() {
      calls.clear()
      given.clear()
    },
  }
}

/** What was mended while the call was read from a text: the note that `synthetic/` leaves. */
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
