import type { MessageWithParts } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import { fail } from "../schema/tool-state.ts"
import type { FileLedger, FileStamp } from "../tool/context.ts"
import { isRecord } from "../util/json.ts"

/**
 * Calls that were under way when an earlier process ended, as the errors they have become: one that was still pending
 * never started, one that was running may have taken effect. The history is changed; the changed parts are returned.
 */
export function settleInterrupted(history: readonly MessageWithParts[]): Part[] {
  return history.flatMap(({ parts }) => parts.filter(isOpen).map(settle))
}

/** Fills the ledger with what the calls of the history read and wrote, so that a continued session need not read again. */
export function restoreLedger(history: readonly MessageWithParts[], ledger: FileLedger): void {
  for (const { parts } of history) {
    for (const part of parts) {
      if (part.type !== "tool" || part.state.status !== "completed") continue
      const { file } = part.state.metadata
      if (isRecord(file) && typeof file.path === "string" && isStamp(file.stamp))
        ledger.record(file.path, file.stamp)
    }
  }
}

function isOpen(part: Part): part is ToolPart {
  return part.type === "tool" && (part.state.status === "pending" || part.state.status === "running")
}

function settle(part: ToolPart): ToolPart {
  const { state } = part
  if (state.status === "pending") {
    part.state = fail(
      state,
      { error: "This call never started: the process ended before it.", metadata: { kind: "interrupted" } },
      Date.now(),
    )
  } else if (state.status === "running") {
    const error =
      "The process ended while this call ran. It may have taken effect, whole or in part: look before you repeat it."
    part.state = fail(state, { error, metadata: { kind: "interrupted" } }, Date.now())
  }
  return part
}

function isStamp(value: unknown): value is FileStamp {
  return isRecord(value) && typeof value.size === "number" && typeof value.mtimeMs === "number"
}
