import * as z from "zod"
import { Attachment, ToolStateCompleted, ToolStateError } from "../../schema/tool-state.ts"
import { UsageError } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import { ProviderConfig } from "../model.ts"

/**
 * A file of the prompt, with its content: a recording reads nothing of the machine that it is played on. Text stands as it
 * is, so that what is another in each place can be marked in it.
 */
const RecordedFile = z.lazy(() =>
  z.strictObject({
    mime: z.string(),
    filename: z.string().optional(),
    url: z.string().startsWith("data:").optional(),
    text: z.string().optional(),
  }),
)
type RecordedFile = z.infer<typeof RecordedFile>

interface DataFile {
  mime: string
  url: string
  filename?: string | undefined
}

const textUrl = "data:text/plain;base64,"

/** The file as it is written down. */
export function toRecorded({ url, ...file }: DataFile): RecordedFile {
  if (!url.startsWith(textUrl)) return { ...file, url }
  return { ...file, text: Buffer.from(url.slice(textUrl.length), "base64").toString("utf8") }
}

/** The file as it was attached. */
export function fromRecorded({ mime, filename, url, text = "" }: RecordedFile) {
  return {
    mime,
    url: url ?? `${textUrl}${Buffer.from(text).toString("base64")}`,
    ...(filename === undefined ? {} : { filename }),
  }
}

/** The first line: what the run was asked, so that it can be asked again. */
export const RunLine = z.strictObject({
  type: z.literal("run"),
  version: z.literal(1),
  prompt: z.string(),
  files: z.array(RecordedFile),
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
  /** The prompt of an MCP server that the prompt named, as the server filled it in. */
  command: z
    .strictObject({
      name: z.string(),
      template: z.string(),
      arguments: z.string(),
      origin: z.literal("mcp"),
      description: z.string().optional(),
      attachments: z.array(Attachment).optional(),
    })
    .optional(),
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

/** What the prompt's mentions added to it: see `MentionedFiles`. */
export const MentionsLine = z.strictObject({
  type: z.literal("mentions"),
  files: z.array(RecordedFile),
  notes: z.array(z.string()),
  refused: z.array(
    z.strictObject({
      tool: z.string(),
      callID: z.string(),
      permission: z.string(),
      patterns: z.array(z.string()),
      // Recordings made before the value was renamed contain "person".
      by: z
        .enum(["user", "person", "rule", "plugin", "no-terminal", "auto"])
        .transform((by) => (by === "person" ? "user" : by)),
      reason: z.string(),
    }),
  ),
})
export type MentionsLine = z.infer<typeof MentionsLine>

/** What MCP servers offered from here on. */
export const McpLine = z.strictObject({
  type: z.literal("mcp"),
  tools: z.array(
    z.strictObject({
      server: z.string(),
      id: z.string(),
      description: z.string(),
      schema: z.record(z.string(), z.unknown()),
    }),
  ),
})
export type McpLine = z.infer<typeof McpLine>

const Line = z.discriminatedUnion("type", [
  RunLine,
  RequestLine,
  ResponseLine,
  ToolLine,
  MentionsLine,
  McpLine,
])
/** A line of a recording: one JSON object. */
export type RecordingLine = z.infer<typeof Line>

/** A request with its answer; without one where the run ended before. */
export type Exchange = RequestLine & { response?: ResponseLine }

/** A recording as it is read. */
export interface Recording {
  run: RunLine
  exchanges: Exchange[]
  tools: ToolLine[]
  /** Absent where no prompt was read for mentions. */
  mentions?: MentionsLine
  /** What servers offered, each with how many requests had been made before. */
  mcp: { after: number; tools: McpLine["tools"] }[]
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
  const mentions = rest.find((line) => line.type === "mentions")
  let requests = 0
  const mcp: Recording["mcp"] = []
  for (const line of rest) {
    if (line.type === "request") requests += 1
    else if (line.type === "mcp") mcp.push({ after: requests, tools: line.tools })
  }
  return {
    run,
    mcp,
    ...(mentions === undefined ? {} : { mentions }),
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
