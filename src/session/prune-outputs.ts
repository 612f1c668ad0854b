import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { CompactionInput } from "./compact.ts"

/**
 * Makes pointers to files of long outputs. Returns how many were replaced. The parts become others, so that nobody takes
 * them for the old ones.
 */
export async function pruneOutputs(
  entries: readonly MessageWithParts[],
  { spill, recorder }: Pick<CompactionInput, "spill" | "recorder">,
): Promise<number> {
  const changed: ToolPart[] = []
  for (const { parts } of entries) {
    for (const [index, part] of parts.entries()) {
      if (part.type !== "tool" || part.parentCallID !== undefined || part.state.status !== "completed")
        continue
      const { state } = part
      const small = state.output.length < smallOutput && !state.attachments?.length
      if (state.pruned !== undefined || small) continue
      const { outputPath } = state.metadata
      const pruned = typeof outputPath === "string" ? outputPath : spill(part, state.output)
      const next: ToolPart = { ...part, state: { ...state, pruned } }
      parts[index] = next
      changed.push(next)
    }
  }
  if (changed.length > 0) await recorder.write({ parts: changed })
  return changed.length
}

/** Outputs below this are not worth a file. In characters. */
const smallOutput = 1_000
