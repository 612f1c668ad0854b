import * as z from "zod"
import { Message } from "../../schema/message.ts"
import { Part } from "../../schema/part.ts"
import { QuestionAnswers, QuestionRequest } from "../../schema/question.ts"
import { Session } from "../../schema/session.ts"
import { Todo } from "../../schema/todo.ts"
import { InputView } from "./input-schemas.ts"
import { name } from "./named.ts"
import { PermissionRequestView } from "./request-schemas.ts"

/** Tokens and cost, as `Usage` in `event/events.ts`. */
export const Usage = z.object({
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
    .describe("Number of the stored change in its session. Absent for events that are not stored"),
}

/** The event that ends a run. */
const RunCompleted = z.object({
  type: z.literal("run.completed"),
  ...sequenced,
  status: z
    .enum(["completed", "incomplete", "failed", "limit", "interrupted"])
    .describe(
      "`incomplete`: the model's last answer ended early or was empty. `limit`: a limit of steps, tokens, cost or time was reached, or three repeated calls were refused. Refused calls do not fail a run",
    ),
  exitCode: z.number().describe("Exit code of `tackle run`"),
  text: z.string().describe("The model's last text"),
  messageIDs: z
    .array(z.string())
    .describe(
      "Messages with the role `user` that the run added, oldest first. An input of the run has one of them as its `messageID`. Empty if the run could not start",
    ),
  usage: Usage,
  refused: z.array(Refusal).describe("Calls that did not run because they were refused"),
  durationMs: z.number().describe("Excludes the time spent waiting for the user"),
})

/** The events in `event/events.ts`. `test/server/document.test.ts` compares the types. */
export const EventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("session.created"), ...sequenced, session: Session }),
  z.object({ type: z.literal("session.updated"), ...sequenced, session: Session }),
  z.object({ type: z.literal("session.deleted"), ...sequenced, session: Session }),
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
    delta: z.string().describe("Text to append to the part's field"),
  }),
  z.object({ type: z.literal("permission.asked"), ...sequenced, request: PermissionRequestView }),
  z.object({
    type: z.literal("permission.replied"),
    ...sequenced,
    requestID: z.string(),
    reply: z.enum(["once", "always", "reject"]).describe("`always` means `session` or `project`"),
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
  z.object({ type: z.literal("input.updated"), ...sequenced, input: InputView }),
  z.object({
    type: z.literal("context.filling"),
    ...sequenced,
    used: z.number().describe("Size of the history in tokens"),
    room: z.number().describe("Maximum size of the history that leaves space for an answer, in tokens"),
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

name("StoredSession", Session)
name("Message", Message)
name("Part", Part)

/** Schemas for event streams and the end of a run. */
export const eventResponses = {
  event: name("SessionEvent", EventSchema),
  reset: name("Reset", Reset),
  end: name("RunCompleted", RunCompleted),
}
