/**
 * The place of a chat completions request in the script: how many answers with calls it looks back on. Undefined
 * without tools: such a request stands beside the conversation.
 */
export function chatTurn(body: Record<string, unknown>): number | undefined {
  if (toolNames(body).length === 0 || !Array.isArray(body.messages)) return undefined
  const messages: { tool_calls?: unknown[] }[] = body.messages
  return messages.filter((message) => message.tool_calls?.length).length
}

/** The names of the tools that a chat completions request offers. */
export function toolNames(body: Record<string, unknown>): string[] {
  if (!Array.isArray(body.tools)) return []
  const tools: { function?: { name?: string } }[] = body.tools
  return tools.map((tool) => tool.function?.name ?? "")
}
