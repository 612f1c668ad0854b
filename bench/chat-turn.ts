/**
 * Returns the position of a chat completions request in the script: the number of earlier answers with calls, or
 * undefined for a request without tools, which is not part of the conversation.
 */
export function chatTurn(body: Record<string, unknown>): number | undefined {
  if (toolNames(body).length === 0 || !Array.isArray(body.messages)) return undefined
  const messages: { tool_calls?: unknown[] }[] = body.messages
  return messages.filter((message) => message.tool_calls?.length).length
}

/** Returns the names of the tools in a chat completions request. */
export function toolNames(body: Record<string, unknown>): string[] {
  if (!Array.isArray(body.tools)) return []
  const tools: { function?: { name?: string } }[] = body.tools
  return tools.map((tool) => tool.function?.name ?? "")
}
