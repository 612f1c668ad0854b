import {
  type ContentBlock,
  type GetPromptResult,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import type { Command } from "../../session/command.ts"
import { commandPieces } from "../../session/command-template.ts"
import { findMentions, type Mention } from "../../session/mentions.ts"
import { pieceCall, shownOutput } from "../../session/run-command.ts"
import type { ClientCalls } from "./client-calls.ts"
import { blockOf } from "./content.ts"
import type { OfferedResources } from "./offered-resources.ts"
import type { OfferedTools } from "./offered-tools.ts"
import { argumentsOf, lineOf } from "./prompt-arguments.ts"
import { uriOfFile } from "./resource-tools.ts"

/** What stands behind the prompts of one client. */
interface PromptSource {
  tackle: Tackle
  calls: ClientCalls
  tools: OfferedTools
  resources: OfferedResources
}

/**
 * Answers `prompts/…`: commands and skills under their names, and prompts of the MCP servers behind the engine as
 * `server:prompt`. What a command has to run, load or read are calls of the client's own, by the rules; the agent, model
 * and subagent that it names are for Tackle's own sessions and play no part.
 */
export function offerPrompts(server: Server, source: PromptSource): void {
  const { tackle } = source

  server.setRequestHandler("prompts/list", async (_request, { mcpReq }) => {
    const own = (await commandsFor(source, mcpReq.signal)).map(toPrompt)
    const ofServers = (await tackle.mcpPrompts(mcpReq.signal)).map(({ server: id, name, ...about }) => ({
      ...about,
      name: `${id}:${name}`,
    }))
    return { prompts: [...own, ...ofServers] }
  })
  server.setRequestHandler("prompts/get", async ({ params: { name, arguments: given = {} } }, context) => {
    const command = (await commandsFor(source, context.mcpReq.signal)).find((each) => each.name === name)
    if (command) return await fillIn(command, given, context, source)
    const [, id = "", prompt = ""] = /^([^:]+):(.+)$/s.exec(name) ?? []
    const known = (await tackle.mcpPrompts(context.mcpReq.signal)).some(
      (each) => each.server === id && each.name === prompt,
    )
    if (!known) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no prompt "${name}".`)
    const asked = { server: id, name: prompt, arguments: given, signal: context.mcpReq.signal }
    const messages = await tackle.mcpPrompt(asked)
    const blocks = messages.map(async ({ role, text, attachments }) => [
      ...(text === "" ? [] : [{ role, content: { type: "text" as const, text } }]),
      ...(await Promise.all(attachments.map(blockOf))).map((content) => ({ role, content })),
    ])
    return { messages: (await Promise.all(blocks)).flat() }
  })
}

/** A skill is there for clients that have the tool which loads it. */
async function commandsFor({ tackle, tools }: PromptSource, signal: AbortSignal): Promise<Command[]> {
  const withSkills = await tools.has("skill", signal)
  return tackle.commands().filter(({ origin }) => origin !== "skill" || withSkills)
}

function toPrompt(command: Command): Prompt {
  const { name, description = `The command /${name}.` } = command
  return { name, description, arguments: argumentsOf(command) }
}

async function fillIn(
  command: Command,
  given: Readonly<Record<string, string>>,
  context: ServerContext,
  source: PromptSource,
): Promise<GetPromptResult> {
  const { tackle, calls } = source
  const pieces = commandPieces({ ...command, arguments: lineOf(argumentsOf(command), given) })
  const texts: string[] = []
  for (const piece of pieces) {
    const [call] = pieceCall(piece, command.name)
    if ("text" in piece) texts.push(piece.text)
    else if (call) texts.push(shownOutput((await calls.run(context, call)).state))
  }
  const named = pieces.map((piece) => (piece.kind === "text" ? piece.text : " ")).join("")
  const servers = named.includes("@")
    ? (await tackle.mcpResources(context.mcpReq.signal)).map(({ server }) => server)
    : []
  const mentions = findMentions(named, { ...tackle, agents: [], servers })
  const blocks: ContentBlock[] = [{ type: "text", text: texts.join("") }]
  for (const mention of mentions) blocks.push(...(await blocksFor(mention, context, source)))
  return {
    ...(command.description === undefined ? {} : { description: command.description }),
    messages: blocks.map((content) => ({ role: "user", content })),
  }
}

/** What the command's text names with `@`. What may not be read is a note in its place. */
async function blocksFor(
  mention: Mention,
  context: ServerContext,
  { calls, resources }: PromptSource,
): Promise<ContentBlock[]> {
  if (mention.kind === "agent") return []
  if (mention.kind === "directory") {
    const { state } = await calls.run(context, { tool: "list", input: { path: mention.path } })
    return [{ type: "text", text: `@${mention.name}:\n${shownOutput(state)}` }]
  }
  const named = mention.kind === "resource" ? mention : { uri: uriOfFile(mention.path) }
  try {
    const { contents } = await resources.read(named, context)
    return contents.map((resource): ContentBlock => {
      const { mimeType = "" } = resource
      const picture = "blob" in resource && mimeType.startsWith("image/")
      return picture ? { type: "image", data: resource.blob, mimeType } : { type: "resource", resource }
    })
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return [{ type: "text", text: `@${mention.name} was not attached: ${error.message}` }]
  }
}
