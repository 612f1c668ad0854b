import type { ChatMessage, RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply, ScriptedCall } from "../../src/testing/reply.ts"

/** Returns the text of a message of a request. */
function textOf(message: ChatMessage | undefined): string {
  const { content } = message ?? {}
  if (typeof content === "string") return content
  return (content ?? []).map(({ text = "" }) => text).join("\n")
}

/**
 * Answers by prompt, so that parallel sessions each get their own replies: for each prompt of the user or another
 * agent, the replies to its steps.
 */
export function scriptFor(replies: Readonly<Record<string, Reply[]>>) {
  return ({ body }: RecordedRequest): Reply => {
    const prompt = body.messages.findLastIndex(({ role }) => role === "user")
    const step = body.messages.slice(prompt).filter(({ role }) => role === "assistant").length
    const name = textOf(body.messages[prompt])
    return replies[name]?.[step] ?? { text: `nothing is scripted for step ${step} of "${name}"` }
  }
}

/** A call of `task`. */
export function task(prompt: string, more: Record<string, unknown> = {}): ScriptedCall {
  return {
    name: "task",
    arguments: { description: `do ${prompt}`, prompt, subagent_type: "general", ...more },
  }
}
