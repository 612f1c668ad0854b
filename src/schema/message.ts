import * as z from "zod"
import { FinishReason, type Part, Tokens } from "./part.ts"

/** Reference to a model: `openai` and `gpt-6.2` for `openai/gpt-6.2`. */
export const ModelRef = z.object({ providerID: z.string(), modelID: z.string() })
export type ModelRef = z.infer<typeof ModelRef>

/** The error that ended an answer. */
export const MessageError = z.object({
  name: z.enum([
    "aborted",
    "provider",
    "auth",
    "context-overflow",
    "limit",
    "output",
    "incomplete",
    "unknown",
  ]),
  message: z.string(),
  status: z.number().optional(),
})
export type MessageError = z.infer<typeof MessageError>

/** A user message. Its text and files are parts. */
export const UserMessage = z.object({
  id: z.string(),
  sessionID: z.string(),
  role: z.literal("user"),
  time: z.object({ created: z.number() }),
  agent: z.string(),
  model: ModelRef,
})
export type UserMessage = z.infer<typeof UserMessage>

/** One model step with its calls. `parentID` is the id of the user message that the step answers. */
export const AssistantMessage = z.object({
  id: z.string(),
  sessionID: z.string(),
  role: z.literal("assistant"),
  parentID: z.string(),
  time: z.object({ created: z.number(), completed: z.number().optional() }),
  agent: z.string(),
  model: ModelRef,
  path: z.object({ cwd: z.string(), root: z.string() }),
  cost: z.number(),
  tokens: Tokens,
  finish: FinishReason.optional(),
  /** The server's word for the reason, if the answer ended early. */
  rawFinish: z.string().optional(),
  error: MessageError.optional(),
})
export type AssistantMessage = z.infer<typeof AssistantMessage>

/** A message in a session. */
export const Message = z.discriminatedUnion("role", [UserMessage, AssistantMessage])
export type Message = z.infer<typeof Message>

/** A message with its parts in the order of arrival. */
export interface MessageWithParts {
  message: Message
  parts: Part[]
}
