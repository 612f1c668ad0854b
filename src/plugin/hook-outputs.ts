import * as z from "zod"
import { Message } from "../schema/message.ts"
import { FilePart, Part, TextPart } from "../schema/part.ts"
import { Action } from "../schema/permission.ts"
import { describeIssues } from "../tool/validate.ts"
import { copyPlain } from "./copy-plain.ts"
import type { OutputHook, OutputHooks } from "./hooks.ts"

const record = z.record(z.string(), z.unknown())

/** What a plugin adds needs no ids: it gets them. */
const added = { id: true, sessionID: true, messageID: true } as const
const MessagePart = z.discriminatedUnion("type", [TextPart.partial(added), FilePart.partial(added)])

const TransformedMessage = z.object({ info: Message, parts: z.array(z.union([Part, MessagePart])) })

const shapes: { [H in OutputHook]: z.ZodType<OutputHooks[H]["output"]> } = {
  "tool.execute.before": z.object({ args: record }),
  "tool.execute.after": z.object({ title: z.string(), output: z.string(), metadata: record }),
  "tool.definition": z.object({ description: z.string().min(1), parameters: record }),
  "permission.ask": z.object({ status: Action }),
  "chat.message": z.object({ message: record, parts: z.array(MessagePart) }),
  "chat.params": z.object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    topK: z.number().optional(),
    maxOutputTokens: z.number().int().positive().optional(),
    options: record,
  }),
  "chat.headers": z.object({ headers: z.record(z.string(), z.string()) }),
  "chat.messages.transform": z.object({ messages: z.array(TransformedMessage) }),
  "chat.system.transform": z.object({ system: z.array(z.string()) }),
  "text.complete": z.object({ text: z.string() }),
  "shell.env": z.object({ env: z.record(z.string(), z.string()) }),
  "session.compacting": z.object({ context: z.array(z.string()), prompt: z.string().optional() }),
}

/** What a plugin made of a hook's output, as plain data. Throws `TypeError`, which names what does not fit. */
export function checkOutput<H extends OutputHook>(hook: H, output: unknown): OutputHooks[H]["output"] {
  const parsed = shapes[hook].safeParse(copyPlain(output), { reportInput: true })
  if (parsed.success) return parsed.data
  throw new TypeError(`what it made of the output does not fit: ${describeIssues(parsed.error)}`)
}
