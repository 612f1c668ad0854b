import * as z from "zod"

/** A file that a tool hands back beside its text. `url` is a data URL or an absolute path. */
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

/** The call is arriving: `raw` is the JSON text so far, `input` its value once it is whole. */
export const ToolStatePending = z.lazy(() =>
  z.object({ status: z.literal("pending"), input: Input, raw: z.string() }),
)
export type ToolStatePending = z.infer<typeof ToolStatePending>

/**
 * The tool works; title and metadata are what it last reported. `harmless`: so far it has changed nothing outside of the
 * engine, since it only reads or waits for leave. Times are milliseconds since the epoch.
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

/** When it ran. `waited`: so many milliseconds of that for people's answers. Absent: nobody was asked. */
const Time = z.lazy(() => z.object({ start: z.number(), end: z.number(), waited: z.number().optional() }))

/** How long the tool of a call that ended was at work, in milliseconds. What a person took to answer is not its time. */
export function workMs({ start, end, waited = 0 }: z.infer<typeof Time>): number {
  return Math.max(0, end - start - waited)
}

/** `output` is what the model reads, `title` and `metadata` what people and programs read. */
export const ToolStateCompleted = z.lazy(() =>
  z.object({
    status: z.literal("completed"),
    input: Input,
    output: z.string(),
    title: z.string(),
    metadata: Metadata,
    time: Time,
    attachments: z.array(Attachment).optional(),
    /** The file that holds the output. The model is no longer given that itself, but told where it is. */
    pruned: z.string().optional(),
  }),
)
export type ToolStateCompleted = z.infer<typeof ToolStateCompleted>

/** `error` is the text the model reads. `metadata.kind` says why: see `call/settle.ts`. */
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

/** Where a call stands. The legal moves are the functions of `tool-moves.ts` and no others. */
export const ToolState = z.lazy(() =>
  z.discriminatedUnion("status", [ToolStatePending, ToolStateRunning, ToolStateCompleted, ToolStateError]),
)
export type ToolState = z.infer<typeof ToolState>
