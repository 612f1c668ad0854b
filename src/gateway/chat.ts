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

/** What all requests of a gateway share. */
export interface ChatDependencies {
  upstream: Upstream
  policy: ToolCalling
  /** How models are told to write calls. Undefined: by their names. */
  dialect: DialectName | undefined
  /** Which models the upstream refused tools for. */
  memory: ToolSupport
}

/** A client's request for an answer. */
interface ChatExchange {
  /** The body as it came. */
  text: string
  /** For the upstream. */
  headers: Record<string, string>
  signal: AbortSignal
  reply: Reply
}

/**
 * Answers one request under the policy for tools:
 * - `native`: it goes to the upstream as it came, and so does the answer.
 * - `synthetic`: tools go into the prompt, calls are read out of the text.
 * - `reject`: with tools it is refused; without, as `native`.
 * - `ignore`: as `synthetic`, without the tools: calls and results of the history become text.
 * - `auto`: as `native` until the upstream refuses tools, and for that model from then on as `synthetic`.
 * Rejects with whatever went wrong before the answer began.
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

/** Nothing is sent before the first chunk is there: until then an error can be told by its status. */
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
    "This gateway takes no tools (--policy reject). Leave out tools, or start it with --policy synthetic to have calls read from the text.",
    { status: 400, label: "tools_not_supported", param: "tools" },
  )
}
