import type { Agent } from "../agent/agent.ts"
import type { PromptInput } from "../model/history-to-prompt.ts"
import type { Model } from "../model/model.ts"
import type { StepRequest } from "../model/stream.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Part, TextPart } from "../schema/part.ts"
import { newId } from "../util/id.ts"

/**
 * Returns the tool definitions for the model after plugins have changed them. Plugins change only what the model reads.
 * The schemas for validation and the behavior of the tools do not change.
 */
export async function hookDefinitions(
  plugins: PluginHost | undefined,
  tools: readonly OfferedTool[],
  signal: AbortSignal,
): Promise<readonly OfferedTool[]> {
  if (!plugins?.has("tool.definition")) return tools
  const changed: OfferedTool[] = []
  for (const tool of tools) {
    const { definition, schema, id } = tool
    const about = {
      input: { toolID: id },
      output: { description: definition.description, parameters: { ...schema } },
    }
    const { output } = await plugins.run("tool.definition", about, signal)
    const { description, parameters } = output
    changed.push({ ...tool, definition: { ...definition, description }, schema: parameters })
  }
  return changed
}

/** Returns the parts of the user's message after plugins have changed, removed or added texts and files. */
export async function hookMessage(
  plugins: PluginHost | undefined,
  message: UserMessage,
  parts: readonly Part[],
  signal: AbortSignal,
): Promise<Part[]> {
  if (!plugins?.has("chat.message")) return [...parts]
  const { id: messageID, sessionID, agent, model } = message
  const about = {
    input: { sessionID, agent, model, messageID },
    output: { message: { ...message }, parts: parts.map((part) => ({ ...part })) },
  }
  const { output } = await plugins.run("chat.message", about, signal)
  // The host checks the result. This function assigns ids to parts that plugins added. The schema is loaded lazily,
  // because creating it is slow and most engines have no plugin.
  const schema = (await import("../schema/part.ts")).Part
  return output.parts.map((part) => schema.parse({ id: newId("prt"), ...part, sessionID, messageID }))
}

/**
 * Returns the request settings for a step, as fields of `StepRequest`: the agent's sampling settings, unless a plugin
 * changes them, and the settings that plugins add.
 */
export async function hookParams(
  plugins: PluginHost | undefined,
  { model, user, agent }: { model: Model; user: UserMessage; agent: Agent },
  signal: AbortSignal,
): Promise<
  Pick<StepRequest, "temperature" | "topP" | "topK" | "maxOutputTokens" | "providerOptions" | "headers">
> {
  const own = {
    ...(agent.temperature !== undefined && { temperature: agent.temperature }),
    ...(agent.top_p !== undefined && { topP: agent.top_p }),
  }
  const [params, headers] = [plugins?.has("chat.params"), plugins?.has("chat.headers")]
  if (!plugins || !(params || headers)) return own
  const { ref } = model.info
  const input = {
    sessionID: user.sessionID,
    agent: agent.name,
    model: describeModel(model.info),
    provider: { id: ref.providerID, source: "config", info: { id: ref.providerID }, options: {} },
    message: { ...user },
  }
  const { output } = await plugins.run("chat.params", { input, output: { ...own, options: {} } }, signal)
  const sent = await plugins.run("chat.headers", { input, output: { headers: {} } }, signal)
  const { options, ...rest } = output
  const set = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
  return {
    ...set,
    ...(Object.keys(options).length > 0 ? { providerOptions: options } : {}),
    ...(Object.keys(sent.output.headers).length > 0 ? { headers: sent.output.headers } : {}),
  }
}

/**
 * Returns the system prompt and messages for a step after plugins have changed them. Stored messages do not change.
 * `changed` is true if a plugin may have changed the messages.
 */
export async function hookPrompt(
  plugins: PluginHost | undefined,
  input: PromptInput & { sessionID: string },
  signal: AbortSignal,
): Promise<{ system: readonly string[]; messages: readonly MessageWithParts[]; changed: boolean }> {
  let { system, messages } = input
  if (plugins?.has("chat.system.transform")) {
    const { sessionID, model } = input
    const about = { input: { sessionID, model: describeModel(model) }, output: { system: [...system] } }
    system = (await plugins.run("chat.system.transform", about, signal)).output.system
  }
  if (!plugins?.has("chat.messages.transform")) return { system, messages, changed: false }
  const told = messages.map(({ message, parts }) => ({ info: message, parts }))
  const { output } = await plugins.run(
    "chat.messages.transform",
    { input: {}, output: { messages: told } },
    signal,
  )
  const [schema, { Message }] = await Promise.all([
    import("../schema/part.ts").then(({ Part }) => Part),
    import("../schema/message.ts"),
  ])
  messages = output.messages.map(({ info, parts }) => {
    const message = Message.parse(info)
    const own = { sessionID: message.sessionID, messageID: message.id }
    return { message, parts: parts.map((part) => schema.parse({ id: newId("prt"), ...own, ...part })) }
  })
  return { system, messages, changed: true }
}

/** Returns completed text from the model after plugins have changed it. */
export async function hookText(
  plugins: PluginHost | undefined,
  { sessionID, messageID, id: partID, text }: TextPart,
  signal: AbortSignal,
): Promise<string> {
  if (!plugins) return text
  const about = { input: { sessionID, messageID, partID }, output: { text } }
  return (await plugins.run("text.complete", about, signal)).output.text
}

/** Returns the summary prompt after plugins have changed it. */
export async function hookSummary(
  plugins: PluginHost | undefined,
  sessionID: string,
  prompt: string,
  signal: AbortSignal,
): Promise<string> {
  if (!plugins?.has("session.compacting")) return prompt
  const { output } = await plugins.run(
    "session.compacting",
    { input: { sessionID }, output: { context: [] } },
    signal,
  )
  return [output.prompt ?? prompt, ...output.context].join("\n\n")
}

function describeModel({ ref, name, limit }: Model["info"]): Record<string, unknown> {
  return { id: ref.modelID, providerID: ref.providerID, name, limit: { ...limit } }
}
