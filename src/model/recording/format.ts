import * as z from "zod"
import { Attachment, ToolStateCompleted, ToolStateError } from "../../schema/tool-state.ts"
import { UsageError } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import { ProviderConfig } from "../model.ts"

/**
 * A file in the prompt with its content, because a replay does not read files. Text is stored unencoded, so that
 * placeholders can replace paths in the text.
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

/** Converts a file with a data URL to its recorded form. */
export function toRecorded({ url, ...file }: DataFile): RecordedFile {
  if (!url.startsWith(textUrl)) return { ...file, url }
  return { ...file, text: Buffer.from(url.slice(textUrl.length), "base64").toString("utf8") }
}

/** Converts a recorded file back to a file with a data URL. */
export function fromRecorded({ mime, filename, url, text = "" }: RecordedFile) {
  return {
    mime,
    url: url ?? `${textUrl}${Buffer.from(text).toString("base64")}`,
    filename,
  }
}

/** First line of a recording, with the input of the run. */
export const RunLine = z.strictObject({
  type: z.literal("run"),
  version: z.literal(1),
  prompt: z.string(),
  files: z.array(RecordedFile),
  agent: z.string().optional(),
  /** Name of the model, as `provider/model`. */
  model: z.string(),
  /** Whether the user selected the model. If true, this model overrides the agent's model. */
  named: z.boolean(),
  /** Configured providers, without keys and headers. */
  providers: z.record(z.string(), ProviderConfig),
  limits: z.strictObject({
    maxSteps: z.number().optional(),
    maxTokens: z.number().optional(),
    maxCost: z.number().optional(),
  }),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  allow: z.array(z.string()),
  deny: z.array(z.string()),
  /** Whether the user could answer questions from the model. */
  questions: z.boolean(),
  /** MCP server prompt that the user invoked as a command, with its arguments filled in. */
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

/**
 * A request. Requests are numbered from 1 in the order in which they were made. Headers are not recorded, because they
 * contain keys.
 */
export const RequestLine = z.strictObject({
  type: z.literal("request"),
  number: z.int().positive(),
  method: z.string(),
  /** URL without the query. */
  url: z.string(),
  /** Value of a JSON body, or the text of any other body. */
  body: z.unknown(),
})
export type RequestLine = z.infer<typeof RequestLine>

/** An answer. The line is written when the answer ends. */
export const ResponseLine = z.strictObject({
  type: z.literal("response"),
  /** The number of the request. */
  number: z.int().positive(),
  /** HTTP status. Absent if no answer began. */
  status: z.int().optional(),
  contentType: z.string().optional(),
  /** The events of a stream in order, or the complete body as one item. Empty if there was no body. */
  parts: z.array(z.string()),
  /** The error that interrupted the answer, or the reason why the answer was canceled. */
  error: z.strictObject({ message: z.string(), code: z.string().optional() }).optional(),
})
export type ResponseLine = z.infer<typeof ResponseLine>

/** The final state of a tool call. */
export const ToolLine = z.strictObject({
  type: z.literal("tool"),
  tool: z.string(),
  state: z.discriminatedUnion("status", [ToolStateCompleted, ToolStateError]),
})
export type ToolLine = z.infer<typeof ToolLine>

/** Content that was added to the prompt because of mentions: see `MentionedFiles`. */
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
      // Older recordings use another name for the user.
      by: z
        .enum(["user", "person", "rule", "plugin", "no-terminal", "client", "auto"])
        .transform((by) => (by === "person" ? "user" : by)),
      reason: z.string(),
    }),
  ),
})
export type MentionsLine = z.infer<typeof MentionsLine>

/** The tools of MCP servers, valid from this line on. */
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
/** A line of a recording. */
export type RecordingLine = z.infer<typeof Line>

/** A request with its answer, if there was one. */
export type Exchange = RequestLine & { response?: ResponseLine }

/** A parsed recording. */
export interface Recording {
  run: RunLine
  exchanges: Exchange[]
  tools: ToolLine[]
  /** Absent if the run had no mentions. */
  mentions?: MentionsLine
  /** Lists of offered MCP tools. Each list applies after the first `after` requests. */
  mcp: { after: number; tools: McpLine["tools"] }[]
}

/** Parses a recording. If a line is invalid, throws a `UsageError` that names the line. */
export function parseRecording(text: string, name: string): Recording {
  const lines = text
    .split("\n")
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, number }) => readLine(line, `${name}:${number}`))
  const [run, ...rest] = lines
  if (run?.type !== "run")
    throw new UsageError(`${name} is not a recording: its first line is not of type "run".`)
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
    mentions,
    exchanges: rest
      .filter((line) => line.type === "request")
      .map((request) => {
        const response = responses.get(request.number)
        return response ? { ...request, response } : request
      }),
    tools: rest.filter((line) => line.type === "tool"),
  }
}

function readLine(line: string, location: string): RecordingLine {
  const parsed = parseJson(line)
  if (!parsed.ok) throw new UsageError(`${location} is not valid JSON: ${parsed.error}`)
  const checked = Line.safeParse(parsed.value)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  throw new UsageError(
    `${location} is not a valid recording line: ${issue?.path.join(".") || "the line"}: ${issue?.message}`,
  )
}

/** Values that differ between runs and machines, by placeholder name. */
export type Places = Readonly<Record<"data" | "directory" | "worktree" | "home" | "today", string>>

/** Minimum length of a value that is replaced. Shorter values, such as `/`, are kept. */
const shortest = 3

/** Replaces the values in JSON text with placeholders such as `⟪directory⟫`. */
export function withMarks(json: string, places: Places): string {
  return byLength(places).reduce((text, [name, value]) => text.replaceAll(value, mark(name)), json)
}

/** Replaces the placeholders in JSON text with their values. */
export function withPlaces(json: string, places: Places): string {
  return Object.entries(places).reduce(
    (text, [name, value]) => text.replaceAll(mark(name), quoted(value)),
    json,
  )
}

/** Sorts the values by length, longest first, since one value may be the prefix of another. */
function byLength(places: Places): [string, string][] {
  return Object.entries(places)
    .map(([name, value]): [string, string] => [name, quoted(value)])
    .filter(([, value]) => value.length >= shortest)
    .sort(([, a], [, b]) => b.length - a.length)
}

/** Returns the value as it appears in a JSON string. */
function quoted(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

function mark(name: string): string {
  return `⟪${name}⟫`
}
