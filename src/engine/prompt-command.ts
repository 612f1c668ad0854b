import type { McpPrompt, McpPromptMessage } from "../mcp/client/content.ts"
import { type Command, type CommandCall, findCommand, splitWords } from "../session/command.ts"
import { UsageError } from "../util/errors.ts"

/** Access to the prompts of MCP servers. */
export interface PromptSource {
  /** Ids of the configured servers. */
  servers: readonly string[]
  /** Lists the prompts of one server. */
  list(server: string): Promise<McpPrompt[]>
  fill(asked: {
    server: string
    name: string
    arguments: Record<string, string>
  }): Promise<McpPromptMessage[]>
}

/**
 * Searches the commands, as `findCommand` does, and then the prompts from the MCP server that the text specifies
 * (`/server:prompt`). The words after the name are the prompt's arguments. The last argument receives all remaining
 * words. Throws `UsageError` if an argument is missing, and the errors of `list` and `fill`.
 */
export async function readCommand(
  text: string,
  commands: readonly Command[],
  { servers, list, fill }: PromptSource,
): Promise<{ call: CommandCall } | { near?: string }> {
  const found = findCommand(text, commands)
  const named = /^\/([^\s:]+):\S/.exec(text.trim())?.[1] ?? ""
  if ("call" in found || !servers.includes(named)) return found

  const prompts = new Map((await list(named)).map((prompt) => [`${prompt.server}:${prompt.name}`, prompt]))
  const offered = [...prompts].map(([name, { description }]) => ({
    name,
    template: "",
    origin: "mcp" as const,
    description,
  }))
  const wanted = findCommand(text, offered)
  const prompt = "call" in wanted ? prompts.get(wanted.call.name) : undefined
  if (!("call" in wanted) || prompt === undefined) return wanted
  const given = readArguments(prompt, wanted.call.arguments)
  const messages = await fill({ server: prompt.server, name: prompt.name, arguments: given })
  return {
    call: {
      ...wanted.call,
      template: joined(messages),
      // A prompt without arguments gets the words after its name as text for the model.
      arguments: prompt.arguments.length === 0 ? wanted.call.arguments : "",
      attachments: messages.flatMap(({ attachments }) => attachments),
    },
  }
}

function readArguments({ server, name, arguments: known }: McpPrompt, text: string): Record<string, string> {
  const words = splitWords(text)
  const missing = known.find(({ required }, index) => required && words[index] === undefined)
  if (missing) {
    const usage = known.map((each) => (each.required ? `<${each.name}>` : `[${each.name}]`)).join(" ")
    throw new UsageError(
      `The prompt requires the argument "${missing.name}". Write /${server}:${name} ${usage}`,
    )
  }
  const last = known.length - 1
  const given = known.slice(0, words.length).map(({ name }, index) => {
    return [name, index === last ? words.slice(index).join(" ") : (words[index] ?? "")]
  })
  return Object.fromEntries(given)
}

/**
 * Joins the messages of a prompt into one string. If some messages have the role `assistant`, labels each message with
 * its role.
 */
function joined(messages: readonly McpPromptMessage[]): string {
  const told = messages.filter(({ text }) => text !== "")
  const mixed = told.some(({ role }) => role === "assistant")
  return told.map(({ role, text }) => (mixed ? `[${role}]\n${text}` : text)).join("\n\n")
}
