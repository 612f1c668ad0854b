import type * as z from "zod"
import type { ModelCall } from "../model/chat-completions.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { Answer, AnswerEvent } from "./answer.ts"
import { GatewayError, type GatewayErrorFields } from "./errors.ts"

/** An API that the gateway serves. Defines how requests are read, and how answers and errors are written. */
export interface ClientApi {
  /**
   * Converts the body of a request. If a field is invalid, throws a `GatewayError` with status 400 that names the
   * field.
   */
  read(body: Record<string, unknown>): ClientRequest
  /** Returns the body of an error response. */
  errorBody(error: GatewayErrorFields): object
}

/** A client's request, converted from its API. */
export interface ClientRequest {
  model: string
  /** True if the client requests server-sent events. */
  stream: boolean
  /** False if the client accepts at most one call. Additional calls are then dropped. */
  parallel: boolean
  call: Pick<ModelCall, "prompt" | "tools" | "toolChoice">
  /** Additional fields for the upstream, in the format of the Chat Completions API. */
  settings: Record<string, unknown>
  /** Returns the body of an answer that is not streamed. Throws `GatewayError` if the API cannot express the answer. */
  whole(answer: Answer): object
  /** Creates a writer for an answer that is streamed. */
  writer(): AnswerWriter
}

/** Writes one answer as server-sent events. */
export interface AnswerWriter {
  /**
   * Returns the server-sent events for an event of the answer, as text. The text can be empty. Throws `GatewayError` if
   * the API cannot express the answer.
   */
  write(event: AnswerEvent): string
  /** Returns the server-sent event that ends an incomplete answer, as text. */
  fail(error: GatewayError): string
}

/** Returns a server-sent event with JSON data. */
export function dataEvent(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** Returns a server-sent event with JSON data. The name of the event is the `type` of the data. */
export function namedEvent(data: { type: string; [field: string]: unknown }): string {
  return `event: ${data.type}\n${dataEvent(data)}`
}

/**
 * Parses a part of a request. `where` is the path of this part in the body. If a field is invalid, throws a
 * `GatewayError` that names the field.
 */
export function checked<T>(schema: z.ZodType<T>, value: unknown, where = ""): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const param = [where, ...(issue?.path ?? [])].filter((key) => key !== "").join(".")
  throw invalid(`${param || "The body"}: ${issue?.message ?? "invalid"}`, param || undefined)
}

/** Returns the error for an invalid request. `param` is the path of the field. */
export function invalid(message: string, param?: string): GatewayError {
  return new GatewayError(message, { status: 400, label: "invalid_request", param })
}

/** Returns the error for a part of a request that has no equivalent in the Chat Completions API. */
export function unsupported(what: string, param: string): GatewayError {
  return invalid(
    `${param}: The gateway does not support ${what}, because the upstream has only a Chat Completions API.`,
    param,
  )
}

/** Throws `GatewayError` if the tool choice requires a tool that the request does not offer. */
export function assertChoice({ tools = [], toolChoice: choice }: ClientRequest["call"]): void {
  if (choice?.type === "tool" && !tools.some(({ name }) => name === choice.toolName))
    throw invalid(`The request does not offer a tool named ${choice.toolName}.`, "tool_choice")
  if (choice?.type === "required" && tools.length === 0)
    throw invalid("The request requires a tool call but does not offer a tool.", "tool_choice")
}

/** Returns a function tool. Adds `type` and `properties` to the JSON Schema of the parameters if they are missing. */
export function functionTool(
  name: string,
  description: string | null | undefined,
  parameters: Readonly<Record<string, unknown>> | null | undefined,
) {
  return {
    type: "function" as const,
    name,
    description: description || undefined,
    inputSchema: { type: "object" as const, properties: {}, ...parameters },
  }
}

/**
 * Returns a custom tool as a function with one string parameter. Adds `grammar` to the description, because the grammar
 * defines the strings that the tool accepts.
 */
export function customTool(
  name: string,
  description: string | null | undefined,
  grammar: { syntax?: string | null | undefined; definition?: string | null | undefined } | null | undefined,
) {
  const format =
    grammar?.definition && `The input has this ${grammar.syntax ?? ""} grammar:\n${grammar.definition}`
  const parameters = { properties: { input: { type: "string" } }, required: ["input"] }
  return functionTool(name, [description, format].filter(Boolean).join("\n\n"), parameters)
}

/**
 * Returns the text that the model wrote for a custom tool. `input` is the JSON of the arguments, because the upstream
 * sees a custom tool as a function with one string parameter. If `input` is anything else, returns it unchanged.
 */
export function customInput(input: string): string {
  const parsed = parseJson(input)
  return parsed.ok && isRecord(parsed.value) && typeof parsed.value.input === "string"
    ? parsed.value.input
    : input
}

/**
 * Parses the arguments of a call. Empty text becomes an empty object. Other text that is not a JSON object becomes the
 * value of a single argument, `arguments`.
 */
export function readArguments(text: string): Record<string, unknown> {
  const parsed = parseJson(text)
  if (parsed.ok && isRecord(parsed.value)) return parsed.value
  return text.trim() === "" ? {} : { arguments: text }
}

/**
 * Converts the URL of an image to a file part. Throws `GatewayError` if the URL is neither an http(s) URL nor a base64
 * `data:` URL. `where` is the path of the image in the request, for the error.
 */
export function readImage(url: string, where: string) {
  if (/^https?:/i.test(url) && URL.canParse(url))
    return { type: "file" as const, mediaType: "image", data: { type: "url" as const, url: new URL(url) } }
  const image = readDataUrl(url)
  if (image === undefined) throw invalid("The image must be an http(s) URL or a base64 data: URL.", where)
  return image
}

/**
 * Converts the base64 `data:` URL of a file to a file part. Throws `GatewayError` for any other URL. `where` is the
 * path of the file in the request, for the error.
 */
export function readFile(url: string, where: string) {
  const file = readDataUrl(url)
  if (file === undefined) throw invalid("The content of the file must be a base64 data: URL.", where)
  return file
}

function readDataUrl(url: string) {
  const [, mediaType, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s.exec(url) ?? []
  if (mediaType === undefined || data === undefined) return undefined
  return { type: "file" as const, mediaType, data: { type: "data" as const, data } }
}

type Message = ModelCall["prompt"][number]
/** A text part or file part of a user message. */
export type UserPart = Extract<Message, { role: "user" }>["content"][number]

/**
 * Adds a system prompt. System prompts at the beginning are joined into one message. A later system prompt becomes a
 * user message, because many chat templates accept system prompts only at the beginning.
 */
export function addSystem(messages: Message[], text: string): void {
  const last = messages.at(-1)
  if (text === "") return
  if (last === undefined) messages.push({ role: "system", content: text })
  else if (last.role === "system")
    messages[messages.length - 1] = { ...last, content: `${last.content}\n\n${text}` }
  else messages.push({ role: "user", content: [{ type: "text", text: `<system>\n${text}\n</system>` }] })
}

/** The result of a call, from a client's request. */
interface GivenResult {
  toolCallId: string
  toolName: string
  content: readonly UserPart[]
  isError: boolean
}

/**
 * Returns the messages for consecutive results. The Chat Completions API accepts only text in a result, so a user
 * message after the results contains their files and names the call of each file.
 */
export function resultMessages(results: readonly GivenResult[]): Message[] {
  if (results.length === 0) return []
  const following: UserPart[] = []
  const content = results.map(({ toolCallId, toolName, content, isError }) => {
    const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
    const files = content.filter((part) => part.type === "file")
    if (files.length > 0)
      following.push(
        { type: "text", text: `Files returned by the ${toolName} call ${toolCallId}:` },
        ...files,
      )
    const value = isError && !/^error\b/i.test(text) ? `Error: ${text}` : text
    const output = { type: "text" as const, value }
    return { type: "tool-result" as const, toolCallId, toolName, output }
  })
  const messages: Message[] = [{ role: "tool", content }]
  return following.length > 0 ? [...messages, { role: "user", content: following }] : messages
}

/** Number of characters that count as one token. */
const charactersPerToken = 4

/** Number of characters counted for a file. Providers count about 1,500 tokens for an image. */
const fileCharacters = 6_000

/** Estimates the number of input tokens. The Chat Completions API cannot count tokens in advance. */
export function inputTokens({ prompt, tools = [] }: ClientRequest["call"]): number {
  let files = 0
  const text = JSON.stringify([prompt, tools], (_, value: unknown) => {
    if (!isRecord(value) || value.type !== "file") return value
    files += 1
    return undefined
  })
  return Math.ceil((text.length + files * fileCharacters) / charactersPerToken)
}

/**
 * Returns the token counts for an answer. Estimates the input and output counts if the upstream did not send them,
 * because clients use these counts to decide when to shorten their history. Other missing counts are 0.
 */
export function countTokens({ blocks, usage }: Answer, call: ClientRequest["call"]) {
  const written = blocks.reduce(
    (sum, block) => sum + (block.type === "call" ? block.name + block.input : block.text).length,
    0,
  )
  return {
    input: usage.inputTokens.total ?? inputTokens(call),
    output: usage.outputTokens.total ?? Math.ceil(written / charactersPerToken),
    cached: usage.inputTokens.cacheRead ?? 0,
    reasoning: usage.outputTokens.reasoning ?? 0,
  }
}
