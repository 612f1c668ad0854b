import * as z from "zod"

/**
 * A file in a tool result. `url` is a data URL or an absolute path. Ids that the tool returns are kept unchanged.
 */
export const Attachment = z.lazy(() =>
  z.object({
    id: z.string().optional(),
    sessionID: z.string().optional(),
    messageID: z.string().optional(),
    type: z.literal("file"),
    mime: z.string(),
    url: z.string(),
    filename: z.string().optional(),
  }),
)
export type Attachment = z.infer<typeof Attachment>

const Input = z.lazy(() => z.record(z.string(), z.unknown()))
const Metadata = z.lazy(() => z.record(z.string(), z.unknown()))

/**
 * State of a call that is still arriving. `raw` is the JSON text received so far. `input` is the parsed value once the
 * text is complete.
 */
export const ToolStatePending = z.lazy(() =>
  z.object({ status: z.literal("pending"), input: Input, raw: z.string() }),
)
export type ToolStatePending = z.infer<typeof ToolStatePending>

/**
 * State of a running call. The tool reports `title` and `metadata`. `harmless` means that the tool has changed nothing
 * outside the engine so far, because it only reads or waits for permission. Times are in milliseconds since the epoch.
 */
export const ToolStateRunning = z.lazy(() =>
  z.object({
    status: z.literal("running"),
    input: Input,
    title: z.string().optional(),
    metadata: Metadata.optional(),
    harmless: z.literal(true).optional(),
    time: z.object({ start: z.number() }),
  }),
)
export type ToolStateRunning = z.infer<typeof ToolStateRunning>

/** Start and end of a call. `waited` is the part of that time spent waiting for the user, in milliseconds. */
const Time = z.lazy(() => z.object({ start: z.number(), end: z.number(), waited: z.number().optional() }))

/** Returns the working time of a finished call in milliseconds, excluding the time spent waiting for the user. */
export function workMs({ start, end, waited = 0 }: z.infer<typeof Time>): number {
  return Math.max(0, end - start - waited)
}

/** State of a completed call. The model reads `output`. Users and programs read `title` and `metadata`. */
export const ToolStateCompleted = z.lazy(() =>
  z.object({
    status: z.literal("completed"),
    input: Input,
    output: z.string(),
    title: z.string(),
    metadata: Metadata,
    time: Time,
    attachments: z.array(Attachment).optional(),
    /** Path of a file with the output. If set, the model receives only this path instead of the output. */
    pruned: z.string().optional(),
  }),
)
export type ToolStateCompleted = z.infer<typeof ToolStateCompleted>

/**
 * State of a failed call. The model reads `error`. `metadata.kind` is the reason: see `call/call-failure.ts`. If the
 * arguments are not a JSON object, `raw` is their text as the model wrote it, and `input` is empty.
 */
export const ToolStateError = z.lazy(() =>
  z.object({
    status: z.literal("error"),
    input: Input,
    raw: z.string().optional(),
    error: z.string(),
    metadata: Metadata.optional(),
    time: Time,
  }),
)
export type ToolStateError = z.infer<typeof ToolStateError>

/** The state of a call. The functions in `tool-moves.ts` are the only transitions. */
export const ToolState = z.lazy(() =>
  z.discriminatedUnion("status", [ToolStatePending, ToolStateRunning, ToolStateCompleted, ToolStateError]),
)
export type ToolState = z.infer<typeof ToolState>
