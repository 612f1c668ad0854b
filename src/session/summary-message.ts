import type { MessageWithParts } from "../schema/message.ts"
import type { CompactionPart, TextPart } from "../schema/part.ts"
import type { CompactionInput } from "./compact.ts"
import { namedTools } from "./deferred-tools.ts"
import type { Summary } from "./summarize.ts"
import { shorten } from "./summary-request.ts"
import { newUserMessage, partOf } from "./user-message.ts"

/** A message in the person's place that stands for all before `kept`. Nothing is stored. */
export function summaryMessage(
  { text: summary, tokens, cost }: Summary,
  kept: readonly MessageWithParts[],
  input: CompactionInput,
): MessageWithParts {
  const { session, agent, model, auto } = input
  const message = newUserMessage({ session, agent, model })
  const part = partOf(message)
  const first = kept[0]?.message.id
  const compaction: CompactionPart = { ...part(), type: "compaction", auto, tokens, cost }
  if (first !== undefined) compaction.from = first
  const tools = namedTools(input.history)
  if (tools.length > 0) compaction.tools = tools
  const seen = input.files.entries()
  if (seen.length <= mostSeen) compaction.seen = seen.map(([path, stamp]) => ({ path, stamp }))
  const text: TextPart = { ...part(), type: "text", synthetic: true, text: contextText(summary, kept, input) }
  return { message, parts: [compaction, text] }
}

/** With more files the part would be too large to be told, at some 200 bytes each: they are then looked for in the calls. */
const mostSeen = 1_000

/** The summary with what must not get lost in it. */
function contextText(
  summary: string,
  kept: readonly MessageWithParts[],
  { history, todos, jobs, auto }: CompactionInput,
): string {
  const request = kept.some(isRequest) ? undefined : history.findLast(isRequest)
  const words = request?.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const open = todos.filter(({ status }) => status !== "completed" && status !== "cancelled")
  return [
    `To save room, what came before was replaced by this summary:\n\n${summary}`,
    ...(words
      ? [`The person's last request, word for word:\n${shorten(words.join("\n"), requestCharacters)}`]
      : []),
    ...(open.length > 0
      ? [`Open to-dos:\n${open.map(({ content, status }) => `- ${content} (${status})`).join("\n")}`]
      : []),
    ...(jobs.length > 0
      ? [
          `Jobs that still run:\n${jobs.map(({ id, command }) => `- ${id}: ${shorten(command, 200)}`).join("\n")}`,
        ]
      : []),
    ...(auto ? ["Go on with the work from where it stands. Do not repeat what is done."] : []),
  ].join("\n\n")
}

/** True for a message in the person's own words. */
function isRequest({ message, parts }: MessageWithParts): boolean {
  return message.role === "user" && parts.some((part) => part.type === "text" && !part.synthetic)
}

/** Of the person's request, in characters. */
const requestCharacters = 8_000
