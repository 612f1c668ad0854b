import * as z from "zod"
import { ToolStateCompleted, ToolStateError } from "../../schema/tool-state.ts"
import { UsageError } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import { ProviderConfig } from "../model.ts"

/** The first line: what the run was asked, so that it can be asked again. */
export const RunLine = z.strictObject({
  type: z.literal("run"),
  version: z.literal(1),
  prompt: z.string(),
  files: z.array(z.strictObject({ mime: z.string(), url: z.string(), filename: z.string().optional() })),
  agent: z.string().optional(),
  /** `provider/model`. */
  model: z.string(),
  /** It went before that of the agent. */
  named: z.boolean(),
  /** Without keys and headers. */
  providers: z.record(z.string(), ProviderConfig),
  limits: z.strictObject({
    maxSteps: z.number().optional(),
    maxTokens: z.number().optional(),
    maxCost: z.number().optional(),
  }),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  allow: z.array(z.string()),
  deny: z.array(z.string()),
  /** Somebody was there to answer the model's questions. */
  questions: z.boolean(),
})
export type RunLine = z.infer<typeof RunLine>

/** A request, numbered from 1 in the order in which they were made. Its headers are not kept: keys stand in them. */
export const RequestLine = z.strictObject({
  type: z.literal("request"),
  number: z.int().positive(),
  method: z.string(),
  /** Without its query. */
  url: z.string(),
  /** The value of a JSON body, else its text. */
  body: z.unknown(),
})
export type RequestLine = z.infer<typeof RequestLine>

/** What came back, written when it had ended. */
export const ResponseLine = z.strictObject({
  type: z.literal("response"),
  /** Of its request. */
  number: z.int().positive(),
  /** Absent where no answer began. */
  status: z.int().optional(),
  contentType: z.string().optional(),
  /** The body in the order it came: a stream's events, any other body whole. */
  parts: z.array(z.string()),
  /** How it broke off: by the other side, or because the run wanted no more of it. */
  error: z.strictObject({ message: z.string(), code: z.string().optional() }).optional(),
})
export type ResponseLine = z.infer<typeof ResponseLine>

/** How a call ended. */
export const ToolLine = z.strictObject({
  type: z.literal("tool"),
  tool: z.string(),
  state: z.discriminatedUnion("status", [ToolStateCompleted, ToolStateError]),
})
export type ToolLine = z.infer<typeof ToolLine>

const Line = z.discriminatedUnion("type", [RunLine, RequestLine, ResponseLine, ToolLine])
export type RecordingLine = z.infer<typeof Line>

/** A request with its answer; without one where the run ended before. */
export type Exchange = RequestLine & { response?: ResponseLine }

/** A recording as it is read. */
export interface Recording {
  run: RunLine
  exchanges: Exchange[]
  tools: ToolLine[]
}

/** Throws `UsageError` with the line that does not fit. */
export function parseRecording(text: string, name: string): Recording {
  const lines = text
    .split("\n")
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, number }) => readLine(line, `${name}:${number}`))
  const [run, ...rest] = lines
  if (run?.type !== "run") throw new UsageError(`${name} is no recording of a run: its first line is none.`)
  const responses = new Map<number, ResponseLine>()
  for (const line of rest) if (line.type === "response") responses.set(line.number, line)
  return {
    run,
    exchanges: rest
      .filter((line) => line.type === "request")
      .map((request) => {
        const response = responses.get(request.number)
        return response ? { ...request, response } : request
      }),
    tools: rest.filter((line) => line.type === "tool"),
  }
}

function readLine(line: string, place: string): RecordingLine {
  const parsed = parseJson(line)
  if (!parsed.ok) throw new UsageError(`${place} is no JSON: ${parsed.error}`)
  const checked = Line.safeParse(parsed.value)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  throw new UsageError(
    `${place} is no line of a recording: ${issue?.path.join(".") || "it"}: ${issue?.message}`,
  )
}
