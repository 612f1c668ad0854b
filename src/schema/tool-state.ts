import * as z from "zod"
import { TackleError } from "../util/errors.ts"

/** A file that a tool hands back beside its text. `url` is a data URL or an absolute path. */
export const Attachment = z.object({
  type: z.literal("file"),
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
})
export type Attachment = z.infer<typeof Attachment>

const Input = z.record(z.string(), z.unknown())
const Metadata = z.record(z.string(), z.unknown())

/** The call is arriving: `raw` is the JSON text so far, `input` its value once it is whole. */
export const ToolStatePending = z.object({ status: z.literal("pending"), input: Input, raw: z.string() })
export type ToolStatePending = z.infer<typeof ToolStatePending>

/**
 * The tool works; title and metadata are what it last reported. `harmless`: so far it has changed nothing outside of the
 * engine, since it only reads or waits for leave. Times are milliseconds since the epoch.
 */
export const ToolStateRunning = z.object({
  status: z.literal("running"),
  input: Input,
  title: z.string().optional(),
  metadata: Metadata.optional(),
  harmless: z.literal(true).optional(),
  time: z.object({ start: z.number() }),
})
export type ToolStateRunning = z.infer<typeof ToolStateRunning>

/** `output` is what the model reads, `title` and `metadata` what people and programs read. */
export const ToolStateCompleted = z.object({
  status: z.literal("completed"),
  input: Input,
  output: z.string(),
  title: z.string(),
  metadata: Metadata,
  time: z.object({ start: z.number(), end: z.number() }),
  attachments: z.array(Attachment).optional(),
  /** The file that holds the output. The model is no longer given that itself, but told where it is. */
  pruned: z.string().optional(),
})
export type ToolStateCompleted = z.infer<typeof ToolStateCompleted>

/** `error` is the text the model reads. `metadata.kind` says why: see `call/settle.ts`. */
export const ToolStateError = z.object({
  status: z.literal("error"),
  input: Input,
  error: z.string(),
  metadata: Metadata.optional(),
  time: z.object({ start: z.number(), end: z.number() }),
})
export type ToolStateError = z.infer<typeof ToolStateError>

/** Where a call stands. The legal moves are the functions of this file and no others. */
export const ToolState = z.discriminatedUnion("status", [
  ToolStatePending,
  ToolStateRunning,
  ToolStateCompleted,
  ToolStateError,
])
export type ToolState = z.infer<typeof ToolState>

/** A move that the life of a call does not have, such as completed → running. A defect of the caller. */
export class IllegalMoveError extends TackleError {
  constructor(from: ToolState["status"], to: ToolState["status"]) {
    super(`A tool call cannot go from ${from} to ${to}.`, {
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

/** Throws {@link IllegalMoveError} unless a call in state `from` may go to state `to`. */
export function assertMove(from: ToolState, to: ToolState): void {
  if (!moves[from.status].includes(to.status)) throw new IllegalMoveError(from.status, to.status)
}

/** The first state of every call, whether its arguments stream in or arrive whole. */
export function pending(raw = "", input: Record<string, unknown> = {}): ToolStatePending {
  return { status: "pending", input, raw }
}

/** pending → running. `harmless`: the tool will not act before {@link act}. */
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

/** running → running: from now on it may take effect. To be stored before it does. */
export function act(from: ToolStateRunning): ToolStateRunning {
  const { harmless: _, ...to } = from
  assertMove(from, to)
  return to
}

/**
 * False where it is proved that a call which ended in this state, or was cut off in it, had no effect: it was stored as
 * `act` has it before it began.
 */
export function mayHaveActed(state: ToolStatePending | ToolStateRunning): boolean {
  return state.status === "running" && state.harmless !== true
}

/** What the model is told of an unfinished call beside how it ended. */
export function describeEffect(state: ToolStatePending | ToolStateRunning): string {
  return mayHaveActed(state)
    ? "It may have taken effect, whole or in part: look before you repeat it."
    : "It had no effect."
}

/** running → running: a new title, and metadata merged over what was there. */
export function progress(
  from: ToolStateRunning,
  update: { title?: string; metadata?: Record<string, unknown> },
): ToolStateRunning {
  const to: ToolStateRunning = { ...from, metadata: { ...from.metadata, ...update.metadata } }
  if (update.title !== undefined) to.title = update.title
  assertMove(from, to)
  return to
}

/** running → completed. */
export function complete(
  from: ToolStateRunning,
  result: { title: string; output: string; metadata: Record<string, unknown>; attachments?: Attachment[] },
  at: number,
): ToolStateCompleted {
  const { title, output, metadata, attachments } = result
  const time = { start: from.time.start, end: at }
  const to: ToolStateCompleted = { status: "completed", input: from.input, output, title, metadata, time }
  if (attachments && attachments.length > 0) to.attachments = attachments
  assertMove(from, to)
  return to
}

/** pending or running → error. */
export function fail(
  from: ToolStatePending | ToolStateRunning,
  failure: { error: string; metadata?: Record<string, unknown>; input?: Record<string, unknown> },
  at: number,
): ToolStateError {
  const metadata = { ...(from.status === "running" ? from.metadata : undefined), ...failure.metadata }
  const time = { start: from.status === "running" ? from.time.start : at, end: at }
  const to: ToolStateError = {
    status: "error",
    input: failure.input ?? from.input,
    error: failure.error,
    time,
  }
  if (Object.keys(metadata).length > 0) to.metadata = metadata
  assertMove(from, to)
  return to
}
