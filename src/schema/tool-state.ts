import * as z from "zod"

/** A file in the result of a tool. `url` is a data URL or an absolute path. */
export const Attachment = z.lazy(() =>
  z.object({
    type: z.literal("file"),
    mime: z.string(),
    url: z.string(),
    filename: z.string().optional(),
  }),
)
export type Attachment = z.infer<typeof Attachment>

const Input = z.lazy(() => z.record(z.string(), z.unknown()))
const Metadata = z.lazy(() => z.record(z.string(), z.unknown()))

/** The call is arriving. `raw` is the JSON text so far, `input` its value when complete. */
export const ToolStatePending = z.lazy(() =>
  z.object({ status: z.literal("pending"), input: Input, raw: z.string() }),
)
export type ToolStatePending = z.infer<typeof ToolStatePending>

/**
 * The tool runs. It reported `title` and `metadata`. `harmless`: it has changed nothing outside the engine so far, because
 * it only reads or waits for permission. Times are milliseconds since the epoch.
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

/** Start and end of the call. `waited`: milliseconds of it spent waiting for the user. */
const Time = z.lazy(() => z.object({ start: z.number(), end: z.number(), waited: z.number().optional() }))

/** Returns how long the tool of a finished call worked, in milliseconds, without the time spent waiting for the user. */
export function workMs({ start, end, waited = 0 }: z.infer<typeof Time>): number {
  return Math.max(0, end - start - waited)
}

/** The model reads `output`. Users and programs read `title` and `metadata`. */
export const ToolStateCompleted = z.lazy(() =>
  z.object({
    status: z.literal("completed"),
    input: Input,
    output: z.string(),
    title: z.string(),
    metadata: Metadata,
    time: Time,
    attachments: z.array(Attachment).optional(),
    /** The file with the output. The model reads only its path. */
    pruned: z.string().optional(),
  }),
)
export type ToolStateCompleted = z.infer<typeof ToolStateCompleted>

/** The model reads `error`. `metadata.kind` is the reason: see `call/call-failure.ts`. */
export const ToolStateError = z.lazy(() =>
  z.object({
    status: z.literal("error"),
    input: Input,
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
