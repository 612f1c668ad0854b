import type { ReasoningPart, TextPart } from "../schema/part.ts"
import type { StepParts } from "./step-parts.ts"

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
