import { TackleError } from "../util/errors.ts"
import type {
  Attachment,
  ToolState,
  ToolStateCompleted,
  ToolStateError,
  ToolStatePending,
  ToolStateRunning,
} from "./tool-state.ts"

/** Thrown for an impossible transition, such as completed → running. Indicates a bug in the caller. */
class IllegalMoveError extends TackleError {
  constructor(from: ToolState["status"], to: ToolState["status"]) {
    super(`A tool call cannot change from ${from} to ${to}.`, {
      code: "tool-state.illegal-move",
      recoverable: false,
    })
  }
}

const moves: Record<ToolState["status"], readonly ToolState["status"][]> = {
  pending: ["pending", "running", "error"],
  running: ["running", "completed", "error"],
  completed: [],
  error: [],
}

/** Throws {@link IllegalMoveError} unless the transition is possible. */
export function assertMove(from: ToolState, to: ToolState): void {
  if (!moves[from.status].includes(to.status)) throw new IllegalMoveError(from.status, to.status)
}

/** Returns the initial state of a call. */
export function pending(raw = "", input: Record<string, unknown> = {}): ToolStatePending {
  return { status: "pending", input, raw }
}

/** Starts a call: pending → running. `harmless` means that the tool has no effect until {@link act} is called. */
export function start(
  from: ToolStatePending,
  input: Record<string, unknown>,
  at: number,
  { harmless = false }: { harmless?: boolean } = {},
): ToolStateRunning {
  const to: ToolStateRunning = { status: "running", input, time: { start: at } }
  if (harmless) to.harmless = true
  assertMove(from, to)
  return to
}

/** Records that a running call may take effect from now on. Store this state before the call takes effect. */
export function act(from: ToolStateRunning): ToolStateRunning {
  const { harmless: _, ...to } = from
  assertMove(from, to)
  return to
}

/** Returns true if a call that was interrupted in this state may have taken effect. */
export function mayHaveActed(state: ToolStatePending | ToolStateRunning): boolean {
  return state.status === "running" && state.harmless !== true
}

/** Returns text that tells the model what effect an unfinished call may have had. */
export function describeEffect(state: ToolStatePending | ToolStateRunning): string {
  return mayHaveActed(state)
    ? "The call may have taken effect, fully or partly. Check this before you repeat it."
    : "The call had no effect."
}

/** Updates a running call: sets the title and merges the metadata. */
export function progress(
  from: ToolStateRunning,
  update: { title?: string; metadata?: Record<string, unknown> },
): ToolStateRunning {
  const to: ToolStateRunning = { ...from, metadata: { ...from.metadata, ...update.metadata } }
  if (update.title !== undefined) to.title = update.title
  assertMove(from, to)
  return to
}

/** Time at which a call ended, and how long the call waited for the user. Both are in milliseconds. */
interface Ended {
  at: number
  waited: number
}

function timeOf(from: ToolStatePending | ToolStateRunning, ended: number | Ended): ToolStateError["time"] {
  const { at, waited } = typeof ended === "number" ? { at: ended, waited: 0 } : ended
  const start = from.status === "running" ? from.time.start : at
  // A call that another process started may have a start time ahead of this clock.
  return { start, end: Math.max(start, at), waited: waited > 0 ? waited : undefined }
}

/** Completes a call: running → completed. */
export function complete(
  from: ToolStateRunning,
  result: { title: string; output: string; metadata: Record<string, unknown>; attachments?: Attachment[] },
  ended: number | Ended,
): ToolStateCompleted {
  const { title, output, metadata, attachments } = result
  const time = timeOf(from, ended)
  const to: ToolStateCompleted = { status: "completed", input: from.input, output, title, metadata, time }
  if (attachments && attachments.length > 0) to.attachments = attachments
  assertMove(from, to)
  return to
}

/** Fails a call: pending or running → error. */
export function fail(
  from: ToolStatePending | ToolStateRunning,
  failure: {
    error: string
    metadata?: Record<string, unknown>
    input?: Record<string, unknown>
    raw?: string
  },
  ended: number | Ended,
): ToolStateError {
  const metadata = { ...(from.status === "running" ? from.metadata : undefined), ...failure.metadata }
  const time = timeOf(from, ended)
  const to: ToolStateError = {
    status: "error",
    input: failure.input ?? from.input,
    error: failure.error,
    time,
  }
  if (failure.raw !== undefined) to.raw = failure.raw
  if (Object.keys(metadata).length > 0) to.metadata = metadata
  assertMove(from, to)
  return to
}
