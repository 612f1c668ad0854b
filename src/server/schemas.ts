// Adds `openapi` to the schemas.
import "@hono/zod-openapi"
import * as z from "zod"
import { Delivery, Input } from "../schema/input.ts"
import { Message } from "../schema/message.ts"
import { Part } from "../schema/part.ts"
import { Grant, PermissionRequest } from "../schema/permission.ts"
import { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import { Session, SessionMatch } from "../schema/session.ts"
import { Todo } from "../schema/todo.ts"
import { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import { Archive } from "../session/archive.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { ServerError } from "./errors.ts"

/** Schemas that appear in the OpenAPI document under their own name. */
const named = z.registry<{ id: string }>()

/** Key that marks references to named schemas until `withReferences` replaces them. */
const referenceKey = "x-named"

/**
 * Gives a response schema a name. Returns a schema of the same type, which appears as a reference in the OpenAPI
 * document. The returned schema does not validate anything, because responses are not validated.
 */
function name<S extends z.ZodType>(id: string, schema: S) {
  named.add(schema, { id })
  return z.custom<z.output<S>>().openapi({ type: "object", [referenceKey]: id })
}

/** Returns the named schemas as JSON Schema, by name. */
export function namedSchemas(): Record<string, object> {
  const uri = (id: string) => `#/components/schemas/${id}`
  const { schemas } = z.toJSONSchema(named, {
    uri,
    io: "output",
    unrepresentable: "any",
    // Later versions may add properties.
    override({ jsonSchema }) {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $id: _, $schema: __, ...schema }]) => [id, schema]),
  )
}

/** Replaces the marks of named schemas in a document with `$ref` references. */
export function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences)
  if (typeof value !== "object" || value === null) return value
  if (referenceKey in value) return { $ref: `#/components/schemas/${String(value[referenceKey])}` }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withReferences(inner)]))
}

const Usage = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  cost: z.number().describe("In US dollars"),
})

const Refusal = z.object({
  tool: z.string(),
  callID: z.string(),
  permission: z.string(),
  patterns: z.array(z.string()),
  by: z.enum(["user", "rule", "plugin", "no-terminal", "client", "auto"]),
  rules: z.array(z.string()).optional().describe("Rules that would allow the call"),
  reason: z.string(),
})

const sequenced = {
  time: z.number().describe("Milliseconds since the epoch"),
  sessionID: z.string(),
  seq: z
    .number()
    .optional()
    .describe("Number of the stored change in its session. Events without a number are not repeated"),
}

/** The event that ends a run. */
const RunCompleted = z.object({
  type: z.literal("run.completed"),
  ...sequenced,
  status: z.enum(["completed", "failed", "limit", "interrupted"]),
  exitCode: z.number(),
  text: z.string().describe("The model's last text"),
  usage: Usage,
  refused: z.array(Refusal).describe("Calls that did not run because they were refused"),
  durationMs: z.number().describe("Excludes the time spent waiting for the user"),
})

/** The events of `event/events.ts`, and the end of a stream. `test/server/document.test.ts` compares the types. */
export const EventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("session.created"), ...sequenced, session: Session }),
  z.object({ type: z.literal("session.updated"), ...sequenced, session: Session }),
  z.object({
    type: z.literal("session.error"),
    ...sequenced,
    error: z.object({ name: z.string(), message: z.string(), status: z.number().optional() }),
  }),
  z.object({ type: z.literal("message.created"), ...sequenced, message: Message }),
  z.object({ type: z.literal("message.updated"), ...sequenced, message: Message }),
  z.object({ type: z.literal("part.updated"), ...sequenced, part: Part }),
  z.object({ type: z.literal("part.removed"), ...sequenced, messageID: z.string(), partID: z.string() }),
  z.object({
    type: z.literal("part.delta"),
    ...sequenced,
    partID: z.string(),
    field: z.enum(["text", "raw"]),
    delta: z.string().describe("Text to append to the field of the part"),
  }),
  z.object({ type: z.literal("permission.asked"), ...sequenced, request: PermissionRequest }),
  z.object({
    type: z.literal("permission.replied"),
    ...sequenced,
    requestID: z.string(),
    reply: z.enum(["once", "always", "reject"]),
    source: z.enum(["user", "auto", "no-terminal", "client", "grant", "abort"]),
    message: z.string().optional(),
  }),
  z.object({ type: z.literal("question.asked"), ...sequenced, request: QuestionRequest }),
  z.object({
    type: z.literal("question.replied"),
    ...sequenced,
    requestID: z.string(),
    answers: QuestionAnswers,
  }),
  z.object({ type: z.literal("question.rejected"), ...sequenced, requestID: z.string() }),
  z.object({ type: z.literal("todo.updated"), ...sequenced, todos: z.array(Todo) }),
  z.object({ type: z.literal("input.updated"), ...sequenced, input: Input }),
  z.object({
    type: z.literal("context.filling"),
    ...sequenced,
    used: z.number().describe("In tokens"),
    room: z.number().describe("In tokens"),
  }),
  RunCompleted,
])

const Reset = z.object({
  type: z.literal("reset"),
  sessionID: z.string().optional(),
  seq: z.number().optional().describe("Number after which the stream can be continued"),
  reason: z
    .enum(["behind", "unknown"])
    .describe(
      "`behind`: the client was too slow. `unknown`: the session has no event with the requested number; read the session again",
    ),
})

/**
 * State of a session: `idle` without work, `running` during a run or while an input is pending, and `waiting` while a
 * request waits for the user.
 */
export const Status = z.enum(["idle", "running", "waiting"])

const Receipt = z.object({
  id: z.string(),
  seq: z.number(),
  state: z.enum(["pending", "promoted", "withdrawn"]),
})

const MessageView = z.object({ message: Message, parts: z.array(Part) })

const SessionView = Session.extend({
  seq: z
    .number()
    .describe(
      "Number of the last change. To follow the session from this state, request the events after this number",
    ),
  status: Status,
  match: SessionMatch.optional().describe("Set by a search: an excerpt of the first text that matches"),
})
/** A stored session with its sequence number and status. */
export type SessionView = z.infer<typeof SessionView>

named.add(Part, { id: "Part" })
named.add(PermissionRequest, { id: "PermissionRequest" })
named.add(QuestionRequest, { id: "QuestionRequest" })
named.add(Session, { id: "StoredSession" })
named.add(Message, { id: "Message" })
named.add(EventSchema, { id: "SessionEvent" })
name("Reset", Reset)

/** A reply to a permission request or a question. */
export const Reply = z.union([
  z.strictObject({
    reply: z.enum(["once", "session", "project", "reject"]),
    message: z.string().optional().openapi({ description: "Message for the model. Only with `reject`" }),
    pattern: z
      .union([z.string(), z.array(z.string()).min(1)])
      .optional()
      .openapi({
        description:
          "Patterns to allow, instead of all patterns in `always`. Only with `session` and `project`",
      }),
  }),
  z.strictObject({
    answers: z.array(z.array(z.string())).openapi({
      description: "One list of answers per question. An empty list skips the question",
    }),
  }),
  z.strictObject({ dismissed: z.literal(true) }),
])
export type Reply = z.infer<typeof Reply>

const WaitingRequest = z.union([
  z.object({ type: z.literal("permission"), ...PermissionRequest.unwrap().shape }),
  z.object({ type: z.literal("question"), ...QuestionRequest.unwrap().shape }),
])

const RestoredFile = z.object({ path: z.string(), kind: z.enum(["restored", "removed"]) })

const UndoResult = z.object({
  messageID: z.string().describe("The message that started the turn"),
  prompt: z.string(),
  files: z.array(RestoredFile),
  refused: z
    .array(
      z.object({
        path: z.string(),
        why: z.enum(["changed", "mixed", "too-large", "unstored", "not-kept", "unreadable", "skipped"]),
      }),
    )
    .describe("Files that were not changed"),
  unseen: z.array(z.string()).describe("Messages about changes of the turn that could not be tracked"),
})

const CompactionResult = z.object({
  before: z.number().describe("Size of the history that the model receives, in characters"),
  after: z.number(),
  pruned: z.number(),
  summarized: z.boolean(),
  spent: z.array(z.looseObject({})),
})

const FileDiff = z.object({
  path: z.string(),
  kind: z.enum(["added", "changed", "deleted"]),
  diff: z.string().optional().describe("Unified diff. Absent if a content is binary or no longer available"),
})

const ToolListing = z.object({
  id: z.string(),
  alias: z.string().optional(),
  description: z.string(),
  parameters: z.custom<JsonSchema>().meta({ type: "object" }).describe("JSON Schema of the arguments"),
  source: z.string(),
  offered: z.boolean(),
  reason: z.string().optional().describe("Reason why the tool is not offered"),
})

const AgentView = z.object({
  name: z.string(),
  description: z.string(),
  mode: z.enum(["primary", "subagent", "all"]),
  model: z.string().optional().describe("As `provider/model`"),
  steps: z.number().describe("Maximum number of model steps per prompt"),
})

const CommandView = z.object({
  name: z.string(),
  description: z.string().optional(),
  origin: z.enum(["skill", "mcp"]).optional(),
})

const ModelView = z.object({
  id: z.string().describe("As `provider/model`"),
  name: z.string(),
  limit: z.object({ context: z.number().optional(), output: z.number().optional() }).describe("In tokens"),
  cost: z
    .object({
      input: z.number(),
      output: z.number(),
      cacheRead: z.number().optional(),
      cacheWrite: z.number().optional(),
    })
    .optional()
    .describe("US dollars per million tokens"),
  attachment: z.boolean().describe("True if the model accepts images"),
  toolCall: z.boolean().describe("False if the model's server does not accept tools"),
})

const McpServer = z.object({
  id: z.string(),
  status: z.enum(["connected", "failed"]),
  tools: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  problem: z.string().optional(),
})

const McpPrompt = z.object({
  server: z.string(),
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  arguments: z.array(
    z.object({ name: z.string(), description: z.string().optional(), required: z.boolean() }),
  ),
})

const CallResult = z.object({
  callID: z.string(),
  state: z.discriminatedUnion("status", [ToolStateCompleted, ToolStateError]),
})

const Output = z.object({
  title: z.string(),
  output: z.string().describe("The text that a model would receive"),
  metadata: z.record(z.string(), z.unknown()),
})

/** Schemas of responses. */
export const responses = {
  error: name(
    "Error",
    z.object({ error: z.object({ code: z.string(), message: z.string(), details: z.unknown().optional() }) }),
  ),
  health: name("Health", z.object({ healthy: z.literal(true), version: z.string() })),
  session: name("Session", SessionView),
  message: name("MessageWithParts", MessageView),
  input: name("Input", Input),
  receipt: name("Receipt", Receipt),
  end: name("RunCompleted", RunCompleted),
  request: name("Request", WaitingRequest),
  grant: name("Grant", Grant),
  undo: name("UndoResult", UndoResult),
  compaction: name("CompactionResult", CompactionResult),
  archive: name("Archive", Archive),
  diff: name("FileDiff", FileDiff),
  todo: name("Todo", Todo),
  tool: name("Tool", ToolListing),
  agent: name("Agent", AgentView),
  command: name("Command", CommandView),
  model: name("Model", ModelView),
  mcpServer: name("McpServer", McpServer),
  mcpPrompt: name("McpPrompt", McpPrompt),
  call: name("CallResult", CallResult),
  output: name("Output", Output),
}

/** Returns the schema of one page of a list. */
export function page<S extends z.ZodType>(item: S) {
  return z.object({
    items: z.array(item),
    next: z.string().optional().openapi({ description: "Cursor of the next page. Absent on the last page" }),
  })
}

const TextInputPart = z.strictObject({ type: z.literal("text"), text: z.string() })
const inputFile = {
  mime: z.string(),
  url: z
    .string()
    .regex(/^data:[^,]*;base64,[A-Za-z0-9+/]*={0,2}$/, {
      error: "expected a base64 data URL; to send a file of the project, mention it as @path in the text",
    })
    .openapi({
      description: "Base64 data URL. To send a file of the project, mention it in the text as `@path`",
    }),
  filename: z.string().optional(),
}
/** Throws `ServerError` if a file in a request of another protocol is not a base64 data URL. */
export function assertDataUrls(files: readonly { url: string }[]): void {
  const refused = files.map(({ url }) => inputFile.url.safeParse(url)).find(({ success }) => !success)
  if (!refused?.error) return
  throw new ServerError(`A file is not valid: ${refused.error.issues[0]?.message}.`, {
    status: 400,
    code: "request.invalid",
  })
}

const FileInputPart = z.strictObject({ type: z.literal("file"), ...inputFile })

/** Text and files of a user, as parts of an input. */
export const InputParts = z.array(z.discriminatedUnion("type", [TextInputPart, FileInputPart])).min(1)
export type InputParts = z.infer<typeof InputParts>

/** Bodies of requests. Unknown fields are errors. */
export const bodies = {
  createSession: z
    .strictObject({
      directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
      agent: z.string().optional(),
      model: z.string().optional().openapi({ description: "As `provider/model`" }),
      title: z.string().max(1_000).optional(),
    })
    .openapi("NewSession"),
  updateSession: z
    .strictObject({
      title: z.string().max(1_000).optional(),
      agent: z.string().optional(),
      model: z.string().optional().openapi({ description: "As `provider/model`" }),
    })
    .openapi("SessionChange"),
  sendInput: z
    .strictObject({
      id: z
        .string()
        .optional()
        .openapi({ description: "Chosen by the client. Sending it again has no effect" }),
      text: z.string().optional(),
      parts: InputParts.optional().openapi({ description: "Texts and files, instead of `text`" }),
      delivery: Delivery.optional().openapi({
        description:
          "`steer` (default): before the next step of a run. `queue`: after the run. `now`: interrupts the run",
      }),
    })
    .refine((body) => (body.text === undefined) !== (body.parts === undefined), {
      error: "give either `text` or `parts`",
    })
    .openapi("NewInput"),
  updateInput: z
    .strictObject({
      text: z.string().optional(),
      files: z
        .array(z.strictObject(inputFile))
        .optional()
        .openapi({ description: "Replaces the files of the input" }),
      delivery: Delivery.optional(),
      position: z
        .int()
        .min(0)
        .optional()
        .openapi({ description: "New position among the pending inputs, from 0" }),
      held: z
        .boolean()
        .optional()
        .openapi({ description: "True holds the input: it is not delivered until `held` is set to false" }),
    })
    .openapi("InputChange"),
  reply: Reply.superRefine((reply, context) => {
    if (!("reply" in reply)) return
    const isGrant = reply.reply === "session" || reply.reply === "project"
    if (reply.pattern !== undefined && !isGrant)
      context.addIssue({ code: "custom", path: ["pattern"], message: "only with `session` and `project`" })
    if (reply.message !== undefined && reply.reply !== "reject")
      context.addIssue({ code: "custom", path: ["message"], message: "only with `reject`" })
  }).openapi("Reply"),
  callTool: z
    .strictObject({
      directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
      arguments: z.record(z.string(), z.unknown()),
      agent: z.string().optional().openapi({ description: "Agent whose rules apply" }),
    })
    .openapi("ToolCall"),
  fork: z
    .strictObject({
      at: z
        .string()
        .optional()
        .openapi({ description: "Copy the history only up to the end of the turn with this message" }),
    })
    .openapi("Fork"),
  undo: z
    .strictObject({
      others: z.boolean().optional().openapi({ description: "Skip files that were changed after the turn" }),
      skip: z.boolean().optional().openapi({ description: "Leave all files of the turn unchanged" }),
    })
    .openapi("Undo"),
  importSession: z
    .strictObject({
      directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
      archive: z.unknown().openapi({ type: "object", description: "An `Archive`" }),
      copy: z.boolean().optional().openapi({ description: "Use new ids" }),
    })
    .openapi("Import"),
  interrupt: z
    .strictObject({
      clear: z.boolean().optional().openapi({ description: "Withdraw the pending inputs and return them" }),
    })
    .openapi("Interrupt"),
}
