import { basename, dirname, join, resolve } from "node:path"
import {
  type ContentBlock,
  type GetPromptResult,
  type Prompt,
  type PromptArgument,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import { type Command, commandPieces, pieceCall, shownOutput } from "../../session/command.ts"
import { findMentions, type Mention } from "../../session/mentions.ts"
import { directoryEntries, isDirectory } from "../../util/file-system.ts"
import { own } from "../../util/json.ts"
import { isInside, realPath } from "../../util/paths.ts"
import type { ClientCalls } from "./client-calls.ts"
import { blockOf } from "./content.ts"
import { uriOfFile } from "./resource-tools.ts"
import type { OfferedResources } from "./resources.ts"
import type { OfferedTools } from "./tools.ts"

/** The services that a client's prompts use. */
interface PromptSource {
  tackle: Tackle
  calls: ClientCalls
  tools: OfferedTools
  resources: OfferedResources
}

/**
 * Handles `prompts/list` and `prompts/get`. Offers commands and skills by name, and prompts from upstream MCP servers
 * as `server:prompt`. Commands run shell commands, load skills and read files through the client's calls, under the
 * permission rules. Ignores a command's agent, model and subagent, which apply only in Tackle's own sessions.
 */
export function offerPrompts(server: Server, source: PromptSource): void {
  const { tackle } = source

  server.setRequestHandler("prompts/list", async (_request, { mcpReq }) => {
    const own = (await commandsFor(source, mcpReq.signal)).map(toPrompt)
    const upstream = (await tackle.mcpPrompts(mcpReq.signal)).map(({ server: id, name, ...about }) => ({
      ...about,
      name: `${id}:${name}`,
    }))
    return { prompts: [...own, ...upstream] }
  })
  server.setRequestHandler("prompts/get", async ({ params: { name, arguments: given = {} } }, context) => {
    const command = (await commandsFor(source, context.mcpReq.signal)).find((each) => each.name === name)
    if (command) return await fillIn(command, given, context, source)
    const [, id = "", prompt = ""] = /^([^:]+):(.+)$/s.exec(name) ?? []
    const known = (await tackle.mcpPrompts(context.mcpReq.signal, id)).some((each) => each.name === prompt)
    if (!known) throw invalid(`Unknown prompt "${name}".`)
    const request = { server: id, name: prompt, arguments: given, signal: context.mcpReq.signal }
    const messages = await tackle.mcpPrompt(request)
    const blocks = messages.map(async ({ role, text, attachments }) => [
      ...(text === "" ? [] : [{ role, content: { type: "text" as const, text } }]),
      ...(await Promise.all(attachments.map(blockOf))).map((content) => ({ role, content })),
    ])
    return { messages: (await Promise.all(blocks)).flat() }
  })
}

/** Returns the commands that the client can use. Skills are included only if the tool that loads them is offered. */
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
  const written = pieces.map((piece) => (piece.kind === "text" ? piece.text : " ")).join("")
  const servers = written.includes("@")
    ? (await tackle.mcpResources(context.mcpReq.signal)).map(({ server }) => server)
    : []
  const mentions = findMentions(written, { ...tackle, agents: [], servers })
  const blocks: ContentBlock[] = [{ type: "text", text: texts.join("") }]
  for (const mention of mentions) blocks.push(...(await blocksFor(mention, context, source)))
  return {
    description: command.description,
    messages: blocks.map((content) => ({ role: "user", content })),
  }
}

/** Returns the content of an `@` mention, or a note that the content could not be read. */
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

/**
 * Returns a command's arguments: each `<word>` (required) and `[word]` (optional) in its hint. If the hint contains no
 * arguments, returns each `$1`, `$2` … in the template, or one argument for all text after the command's name.
 */
export function argumentsOf({ template, argument_hint: hint = "", origin }: Command): PromptArgument[] {
  const hinted = [...hint.matchAll(/<([^<>]+)>|\[([^[\]]+)\]/g)].map(([, needed, optional = ""]) => ({
    name: needed ?? optional,
    required: needed !== undefined,
  }))
  if (hinted.length > 0) return hinted
  const numbers = [...template.matchAll(/\$([1-9]\d?)(?!\d)/g)].map(([, number]) => Number(number))
  const count = origin === undefined ? Math.max(0, ...numbers) : 0
  if (count > 0) return Array.from({ length: count }, (_, index) => ({ name: `argument${index + 1}` }))
  return [{ name: "arguments", description: hint || "Text after the name of the command." }]
}

/**
 * Returns the values in the form in which a user types them after the command. Throws `ProtocolError` if an argument is
 * missing or unknown, or if a value cannot be quoted.
 */
export function lineOf(known: readonly PromptArgument[], given: Readonly<Record<string, string>>): string {
  const names = known.map(({ name }) => name)
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw invalid(`Unknown argument "${unknown}". Available arguments: ${names.join(", ")}.`)
  const missing = known.find(({ name, required }) => required && own(given, name) === undefined)
  if (missing) throw invalid(`The argument "${missing.name}" is missing.`)
  const last = known.findLastIndex(({ name }) => own(given, name) !== undefined)
  const values = known.slice(0, last + 1).map(({ name }) => own(given, name) ?? "")
  // The last argument takes the remaining text of the line, so quotes would become part of its value.
  return values.map((value, index) => (index === known.length - 1 ? value : quoted(value))).join(" ")
}

function quoted(value: string): string {
  if (value !== "" && !/[\s"']/.test(value)) return value
  if (!value.includes('"')) return `"${value}"`
  if (!value.includes("'")) return `'${value}'`
  throw invalid(`Only the last argument can contain both single and double quotes: ${value}`)
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message)
}

/** Maximum number of completions in one response, from the protocol. */
const maxValues = 100

/**
 * Handles `completion/complete`. Suggests paths in the worktree, because most arguments are files. Requires the tool
 * `list` and a rule that allows listing the directory.
 */
export function offerCompletion(
  server: Server,
  { tackle, agent, tools }: { tackle: Tackle; agent: string | undefined; tools: Pick<OfferedTools, "has"> },
): void {
  server.setRequestHandler("completion/complete", async ({ params: { argument } }, { mcpReq }) => {
    const lists = await tools.has("list", mcpReq.signal)
    const values = lists ? await pathsFrom(argument.value, tackle, agent) : []
    const [shown, total] = [values.slice(0, maxValues), values.length]
    return { completion: { values: shown, total, hasMore: total > shown.length } }
  })
}

/** Returns the paths in the worktree that start with `text`. Directories end in a slash. */
async function pathsFrom(text: string, tackle: Tackle, agent: string | undefined): Promise<string[]> {
  const start = text === "" || text.endsWith("/") ? text : dirname(text)
  const beginning = text.endsWith("/") ? "" : basename(text)
  const directory = resolve(tackle.directory, start)
  if (!isInside(directory, tackle.worktree) || !isDirectory(directory)) return []
  const { verdict } = await tackle.explain({
    permission: "list",
    patterns: [directory],
    paths: [realPath(directory)],
    agent,
  })
  if (verdict !== "allow") return []
  const written = text.slice(0, text.length - beginning.length)
  return directoryEntries(directory)
    .filter(({ name }) => name.startsWith(beginning) && (beginning !== "" || !name.startsWith(".")))
    .map((entry) => join(written, entry.name) + (entry.isDirectory() ? "/" : ""))
}
