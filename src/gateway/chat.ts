import { type ModelAnswer, openChatModel } from "../model/chat-completions.ts"
import type { LanguageModel, ToolCalling } from "../model/model.ts"
import { refusesTools } from "../model/provider-error.ts"
import type { ToolSupport } from "../model/tool-support.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { withSyntheticTools } from "../synthetic/middleware.ts"
import { type AnswerOptions, createChunkWriter, wholeAnswer } from "./answer.ts"
import { GatewayError, toGatewayError } from "./errors.ts"
import type { Reply } from "./reply.ts"
import {
  type ChatRequest,
  offersTools,
  otherSettings,
  parseChatRequest,
  parseTextRequest,
  toModelCall,
} from "./request.ts"
import type { Upstream } from "./upstream.ts"

/** Dependencies of all requests. */
export interface ChatDependencies {
  upstream: Upstream
  policy: ToolCalling
  /** Format of synthetic calls. If undefined, it depends on the model's name. */
  dialect: DialectName | undefined
  /** The models for which the upstream refused tools. */
  memory: ToolSupport
}

/** A client's request and the reply to it. */
interface ChatExchange {
  /** The unchanged request body. */
  text: string
  /** Headers for the upstream. */
  headers: Record<string, string>
  signal: AbortSignal
  reply: Reply
}

/**
 * Answers one request according to the tool policy:
 * - `native`: passes the request and the answer through.
 * - `synthetic`: describes tools in the prompt and reads calls from the text.
 * - `reject`: refuses requests with tools. Passes other requests through.
 * - `ignore`: acts as `synthetic`, but without tools. Calls and results in the history become text.
 * - `auto`: acts as `native` until the upstream refuses tools for a model, then as `synthetic` for that model.
 *
 * Rejects with the error if the answer has not begun.
 */
export async function answerChat(exchange: ChatExchange, dependencies: ChatDependencies): Promise<void> {
  const request = parseChatRequest(exchange.text)
  switch (dependencies.policy) {
    case "reject":
      if (offersTools(request)) throw rejection()
      return await passOn(exchange, dependencies)
    case "native":
      return await passOn(exchange, dependencies)
    case "ignore":
      return await answerFromText({ ...request, tools: [], tool_choice: null }, exchange, dependencies)
    case "synthetic":
      return await answerFromText(request, exchange, dependencies)
    case "auto":
      return await answerNativeFirst(request, exchange, dependencies)
  }
}

async function passOn(exchange: ChatExchange, { upstream }: ChatDependencies): Promise<void> {
  await exchange.reply.pipe(await askAsItCame(exchange, upstream))
}

async function answerNativeFirst(
  request: ChatRequest,
  exchange: ChatExchange,
  dependencies: ChatDependencies,
): Promise<void> {
  const { memory, upstream } = dependencies
  if (memory.refused(request.model) !== undefined)
    return await answerFromText(request, exchange, dependencies)
  const response = await askAsItCame(exchange, upstream)
  if (response.ok || !offersTools(request)) return await exchange.reply.pipe(response)
  const said = await response.text()
  if (!refusesTools(response.status, said)) return exchange.reply.sendText(response, said)
  memory.remember(request.model, said)
  await answerFromText(request, exchange, dependencies)
}

async function askAsItCame(
  { text, headers, signal }: ChatExchange,
  { baseURL, fetchUntil }: Upstream,
): Promise<Response> {
  return await fetchUntil(signal)(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: text,
  })
}

async function answerFromText(
  given: ChatRequest,
  { headers, signal, reply }: ChatExchange,
  { upstream, dialect }: ChatDependencies,
): Promise<void> {
  const request = parseTextRequest(given)
  const server = await openChatModel({
    baseURL: upstream.baseURL,
    modelID: request.model,
    headers,
    body: otherSettings(request),
    fetch: upstream.fetchUntil(signal),
  })
  const language = withSyntheticTools(server, dialect === undefined ? {} : { dialect })
  const call = { ...toModelCall(request), abortSignal: signal }
  const options: AnswerOptions = {
    model: request.model,
    parallel: request.parallel_tool_calls !== false,
    includeUsage: request.stream_options?.include_usage === true,
  }
  if (request.stream) return await streamAnswer(language, call, { options, reply })
  const answer: ModelAnswer = await language.doGenerate(call)
  reply.sendJson(200, wholeAnswer(answer, options))
}

/** Streams the answer. Sends nothing before the first chunk, so that an earlier error can still set the HTTP status. */
async function streamAnswer(
  language: LanguageModel,
  call: Parameters<LanguageModel["doStream"]>[0],
  { options, reply }: { options: AnswerOptions; reply: Reply },
): Promise<void> {
  const { stream } = await language.doStream(call)
  const writer = createChunkWriter(options)
  const events = reply.events()
  try {
    for await (const part of stream) {
      for (const chunk of writer.take(part)) await events.send(chunk)
    }
    writer.end()
    await events.end()
  } catch (error) {
    if (!events.begun) throw error
    await events.fail(toGatewayError(error))
  }
}

function rejection(): GatewayError {
  return new GatewayError(
    "This gateway does not accept tools (--policy reject). Send the request without tools, or start the gateway with --policy synthetic to read calls from the text.",
    { status: 400, label: "tools_not_supported", param: "tools" },
  )
}
