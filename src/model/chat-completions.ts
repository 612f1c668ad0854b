import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider"
import { newId } from "../util/id.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { guardAnswers, withBody } from "./answer-guard.ts"
import { malformedArguments } from "./history-to-prompt.ts"
import type { LanguageModel } from "./model.ts"

/** A request to a model. Other folders import the model types from here, not from the AI SDK. */
export type ModelCall = LanguageModelV4CallOptions
/** A part of a streamed answer. */
export type ModelPart = LanguageModelV4StreamPart
/** A complete answer. */
export type ModelAnswer = LanguageModelV4GenerateResult
/** Token counts for an answer. A count is undefined if the server does not report it. */
export type ModelUsage = LanguageModelV4Usage

/** Options for opening a model on a server with a Chat Completions API. */
interface ChatServerOptions {
  /** Base URL, including `/v1` or any other path before `/chat/completions`. */
  baseURL: string
  modelID: string
  headers: Record<string, string>
  /** Default fields for each request body. */
  body: Readonly<Record<string, unknown>>
  fetch: typeof fetch
}

/**
 * Opens a model on a server with a Chat Completions API. Uses no config, retries or tool policies. Asks the server to
 * report usage in streams.
 */
export async function openChatModel(options: ChatServerOptions): Promise<LanguageModel> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
  const provider = createOpenAICompatible({
    name: "upstream",
    baseURL: options.baseURL,
    headers: options.headers,
    fetch: alwaysStreamed(guardAnswers(options.fetch)),
    includeUsage: true,
    transformRequestBody: (body) => ({ ...options.body, ...defined(body) }),
  })
  return provider(options.modelID)
}

/** Removes undefined values, which would override the defaults. */
function defined(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
}

/**
 * Caches the JSON of the messages in Chat Completions requests, because every request carries the whole history. A
 * conversation is identified by its first message that is not a system prompt. A request reuses the JSON of the
 * conversation's messages up to the first message object that differs.
 *
 * Malformed arguments of a call are sent as the model wrote them. If the server rejects a request with malformed
 * arguments, the request is repeated once with the arguments as an object. All later requests also send malformed
 * arguments as an object.
 *
 * Use all three methods together. `model` passes only new messages to the package. `transformRequestBody` caches the
 * conversions. `fetch` sends the whole body, as text or, with `inPieces`, as an array of `Uint8Array`. The pieces are
 * valid until the answer begins. The package must convert each message independently into one message, and a tool
 * message into one message per result.
 */
interface ChatBodyCache {
  model(inner: LanguageModelV4): LanguageModelV4
  transformRequestBody(body: Body): Body
  fetch(inner: typeof fetch, options?: { inPieces?: boolean }): typeof fetch
}

type Body = Record<string, unknown>

interface PendingRequest {
  system: readonly LanguageModelV4Message[]
  /** Messages that the conversation does not contain yet. */
  added: readonly LanguageModelV4Message[]
  conversation: EncodedConversation
  body?: Uint8Array[]
}

/** Creates a cache for the models on one server. */
export function createChatBodyCache(): ChatBodyCache {
  let conversations = new WeakMap<LanguageModelV4Message, EncodedConversation>()
  /** Conversations of the pending requests. Their bytes must not change. */
  const busy = new Set<EncodedConversation>()
  const pending = new Map<string, PendingRequest>()
  /** Whether the server has rejected malformed arguments. */
  let refused = false

  async function sendRepaired<T>(
    call: LanguageModelV4CallOptions,
    inner: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    try {
      return await send(call, inner)
    } catch (error) {
      const isMalformed = (message: LanguageModelV4Message) =>
        textInputs(message).some((input) => input !== undefined)
      if (refused || !isRefusal(error) || !call.prompt.some(isMalformed)) throw error
      refused = true
      conversations = new WeakMap()
      return await send(call, inner)
    }
  }

  async function send<T>(
    call: LanguageModelV4CallOptions,
    inner: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const { prompt } = call
    const found = prompt.findIndex(({ role }) => role !== "system")
    const begin = found < 0 ? prompt.length : found
    const conversation = conversationOf(prompt[begin])
    const system = prompt.slice(0, begin)
    const added = prompt.slice(begin + conversation.keepCommon(prompt, begin))
    const id = newId("call")
    pending.set(id, { system, added, conversation })
    busy.add(conversation)
    try {
      // The package passes this id through as the first message.
      return await inner({ ...call, prompt: [{ role: "system", content: id }, ...system, ...added] })
    } finally {
      pending.delete(id)
      busy.delete(conversation)
    }
  }

  /**
   * Returns the conversation that begins with this message, or a new one if none exists or another request is using it.
   */
  function conversationOf(first: LanguageModelV4Message | undefined): EncodedConversation {
    const known = first && conversations.get(first)
    if (known && !busy.has(known)) return known
    const created = createEncodedConversation()
    if (first && !known) conversations.set(first, created)
    return created
  }

  return {
    model: (inner) => ({
      specificationVersion: "v4",
      provider: inner.provider,
      modelId: inner.modelId,
      get supportedUrls() {
        return inner.supportedUrls
      },
      doStream: (call) => sendRepaired(call, (given) => inner.doStream(given)),
      doGenerate: (call) => sendRepaired(call, (given) => inner.doGenerate(given)),
    }),
    transformRequestBody(body) {
      const [first, ...converted] = body.messages as Body[]
      const id = String(first?.content)
      const request = pending.get(id)
      if (request === undefined)
        throw new Error(
          "Cannot encode the request: wrap its model with the `model` method of the same cache.",
        )
      const { system, added, conversation } = request
      let index = 0
      const encode = (message: LanguageModelV4Message): string => {
        const own = converted.slice(index, index + convertedCount(message))
        index += own.length
        return own.map((value) => `,${JSON.stringify(withTextInputs(value, message, refused))}`).join("")
      }
      const prompts = system.map(encode).join("")
      for (const message of added) conversation.append(message, encode(message))
      const settings = JSON.stringify({ ...body, messages: undefined })
      const begin = Buffer.from(`${settings.slice(0, -1)},"messages":[${prompts.slice(1)}`)
      // Every message has a comma before it.
      const rest = prompts === "" ? conversation.bytes().subarray(1) : conversation.bytes()
      request.body = [begin, rest, Buffer.from("]}")]
      return { pendingRequest: id, stream: body.stream }
    },
    fetch:
      (inner, { inPieces = false } = {}) =>
      (input, init) => {
        const given = typeof init?.body === "string" ? parseJson(init.body) : undefined
        const id = given?.ok && isRecord(given.value) ? String(given.value.pendingRequest) : ""
        const body = pending.get(id)?.body
        if (body === undefined) return inner(input, init)
        return inner(input, { ...init, body: inPieces ? body : Buffer.concat(body).toString() })
      },
  }
}

/** One conversation's messages as JSON, in one block of memory. */
interface EncodedConversation {
  /**
   * Compares the stored messages with the messages of the prompt, starting at `begin`. Discards the first stored
   * message that differs and all later ones. Returns the number of kept messages.
   */
  keepCommon(prompt: readonly LanguageModelV4Message[], begin: number): number
  append(message: LanguageModelV4Message, json: string): void
  /** Returns all messages. Valid until the next call to `keepCommon`. */
  bytes(): Uint8Array
}

function createEncodedConversation(): EncodedConversation {
  const messages: LanguageModelV4Message[] = []
  /** Position after each message. */
  const ends: number[] = []
  let block = Buffer.alloc(0)
  const size = () => ends.at(-1) ?? 0

  return {
    keepCommon(prompt, begin) {
      const different = messages.findIndex((message, index) => message !== prompt[begin + index])
      if (different >= 0) messages.length = different
      ends.length = messages.length
      return messages.length
    },
    append(message, json) {
      const end = size() + Buffer.byteLength(json)
      if (end > block.length) {
        // Unlike `allocUnsafe`, `allocUnsafeSlow` does not keep a block of Node's buffer pool in memory.
        const larger = Buffer.allocUnsafeSlow(Math.ceil(end * 1.25))
        block.copy(larger, 0, 0, size())
        block = larger
      }
      block.write(json, size())
      messages.push(message)
      ends.push(end)
    },
    bytes: () => block.subarray(0, size()),
  }
}

/** Returns, for each call in a message, the malformed arguments, or undefined if the arguments are well-formed. */
function textInputs({ role, content }: LanguageModelV4Message): (string | undefined)[] {
  if (role !== "assistant") return []
  return content.flatMap((part) => {
    if (part.type !== "tool-call") return []
    return [typeof part.input === "string" ? part.input : undefined]
  })
}

/** Replaces the malformed arguments in a converted message, because the package sends them as a JSON string. */
function withTextInputs(
  converted: Body | undefined,
  message: LanguageModelV4Message,
  asObject: boolean,
): unknown {
  const inputs = textInputs(message)
  if (!Array.isArray(converted?.tool_calls) || inputs.every((input) => input === undefined)) return converted
  const calls = converted.tool_calls.map((call: { function: Body }, index: number) => {
    const input = inputs[index]
    if (input === undefined) return call
    const text = asObject ? JSON.stringify(malformedArguments(input)) : input
    return { ...call, function: { ...call.function, arguments: text } }
  })
  return { ...converted, tool_calls: calls }
}

/** Returns true if the server's response says that the request is invalid. Some servers report this with status 500. */
function isRefusal(error: unknown): boolean {
  return isRecord(error) && [400, 422, 500].includes(Number(error.statusCode))
}

/** Returns the number of messages that the package creates from one message. */
function convertedCount(message: LanguageModelV4Message): number {
  return message.role === "tool" ? message.content.filter(({ type }) => type === "tool-result").length : 1
}

/**
 * Wraps a `fetch` for servers that answer a request for a stream with a single JSON body. Converts such a body to a
 * stream. Leaves other answers unchanged.
 */
export function alwaysStreamed(ask: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await ask(input, init)
    const type = response.headers.get("content-type") ?? ""
    if (!response.ok || !/^application\/json\b/i.test(type) || !asksForStream(init)) return response
    return withBody(response, new Blob([asEvents(await response.text())]).stream())
  }
}

function asksForStream(init: RequestInit | undefined): boolean {
  if (typeof init?.body !== "string") return false
  const { value } = { value: undefined, ...parseJson(init.body) }
  return isRecord(value) && value.stream === true
}

/**
 * Converts a completion to server-sent events. Leaves other bodies unchanged, so that the package reports them as
 * unreadable.
 */
function asEvents(text: string): string {
  const { value } = { value: undefined, ...parseJson(text) }
  if (!isRecord(value) || !(Array.isArray(value.choices) || "error" in value)) return text
  const choices = Array.isArray(value.choices) ? { choices: value.choices.map(asDelta) } : {}
  return `data: ${JSON.stringify({ ...value, ...choices })}\n\ndata: [DONE]\n\n`
}

function asDelta(choice: unknown): unknown {
  if (!isRecord(choice) || !isRecord(choice.message)) return choice
  const { message, ...rest } = choice
  return { ...rest, delta: message }
}
