import * as z from "zod"
import { openChatModel } from "../model/chat-completions.ts"
import { type LanguageModel, modelName, type ToolCalling } from "../model/model.ts"
import { refusesTools } from "../model/provider-error.ts"
import { withToolPolicy } from "../model/tool-policy.ts"
import type { ToolSupport } from "../model/tool-support.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { parseJson } from "../util/json.ts"
import { createAnswerReader, readAnswer } from "./answer.ts"
import { type ClientApi, type ClientRequest, checked, invalid } from "./api.ts"
import { ChatRequest, chatApi } from "./chat-api.ts"
import { GatewayError, toGatewayError } from "./errors.ts"
import type { Reply } from "./reply.ts"
import type { Upstream } from "./upstream.ts"

/** Services and settings that all requests share. */
export interface AnswerDependencies {
  upstream: Upstream
  policy: ToolCalling
  /** Format of synthetic calls. If undefined, it depends on the model's name. */
  dialect: DialectName | undefined
  /** Records of models for which the upstream rejects requests with tools. */
  memory: ToolSupport
}

/** A client's request and the reply to it. */
interface Exchange {
  /** The unchanged request body. */
  text: string
  /** Headers for the upstream. */
  headers: Record<string, string>
  signal: AbortSignal
  reply: Reply
  /** Receives an error that ends an answer after it has begun, if the answer's events report the error. */
  onBrokenOff(error: GatewayError): void
}

/**
 * Answers one request according to the tool policy:
 * - `native`: passes the tools to the upstream.
 * - `synthetic`: describes tools in the prompt and reads calls from the text.
 * - `reject`: rejects requests with tools. Acts as `native` for other requests.
 * - `ignore`: acts as `synthetic`, but without tools. Calls and results in the history become text.
 * - `auto`: acts as `native` until the upstream rejects tools for a model, then as `synthetic` for that model.
 *
 * With `native`, passes requests to the Chat Completions API through unchanged, and converts requests to the other
 * APIs. Rejects if an error occurs before the answer has begun, or if an answer that is passed through is interrupted.
 */
export async function answerRequest(
  api: ClientApi,
  exchange: Exchange,
  dependencies: AnswerDependencies,
): Promise<void> {
  const body = readJson(exchange.text)
  if (api === chatApi && (await passThrough(body, exchange, dependencies))) return
  const request = api.read(body)
  if (dependencies.policy === "reject" && request.call.tools !== undefined) throw rejection()
  await answerConverted(request, exchange, dependencies)
}

/** Parses a request body. Throws `GatewayError` with status 400 if the body is not a JSON object. */
export function readJson(text: string): Record<string, unknown> {
  const parsed = parseJson(text)
  if (!parsed.ok) throw invalid(`The body is not valid JSON: ${parsed.error}`)
  return checked(z.looseObject({}), parsed.value)
}

/**
 * Forwards the request to the upstream and the answer to the client, both unchanged, and returns true. Returns false,
 * without a reply to the client, if the tool policy requires a conversion, or if the policy is `auto` and the upstream
 * rejects the tools now or has rejected them before. Throws `GatewayError` if the request is invalid, or if it contains
 * tools and the policy is `reject`.
 */
async function passThrough(
  body: Record<string, unknown>,
  { text, headers, signal, reply }: Exchange,
  { upstream, policy, memory }: AnswerDependencies,
): Promise<boolean> {
  const { model, tools } = checked(ChatRequest, body)
  const offersTools = (tools ?? []).length > 0
  if (policy === "reject" && offersTools) throw rejection()
  if (policy === "synthetic" || policy === "ignore") return false
  if (policy === "auto" && memory.refused(upstreamName(model)) !== undefined) return false
  const response = await upstream.fetchUntil(signal)(`${upstream.baseURL}/chat/completions`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: text,
  })
  if (response.ok || !offersTools || policy !== "auto") {
    await reply.pipe(response)
    return true
  }
  const said = await response.text()
  if (refusesTools(response.status, said)) {
    memory.remember(upstreamName(model), said)
    return false
  }
  reply.sendText(response, said)
  return true
}

function upstreamName(modelID: string): string {
  return modelName({ providerID: "upstream", modelID })
}

async function answerConverted(
  request: ClientRequest,
  { headers, signal, reply, onBrokenOff }: Exchange,
  { upstream, policy, dialect, memory }: AnswerDependencies,
): Promise<void> {
  const server = await openChatModel({
    baseURL: upstream.baseURL,
    modelID: request.model,
    headers,
    body: request.settings,
    fetch: upstream.fetchUntil(signal),
  })
  const ref = { providerID: "upstream", modelID: request.model }
  const language = withToolPolicy(server, { ref, policy, key: "--policy", dialect, memory })
  const call = { ...request.call, abortSignal: signal }
  if (request.stream) return await streamAnswer(language, call, request, { reply, onBrokenOff })
  reply.sendJson(200, request.whole(readAnswer(await language.doGenerate(call), request)))
}

/** Streams the answer. Sends nothing before the first event, so an earlier error can still set the HTTP status. */
async function streamAnswer(
  language: LanguageModel,
  call: Parameters<LanguageModel["doStream"]>[0],
  request: ClientRequest,
  { reply, onBrokenOff }: Pick<Exchange, "reply" | "onBrokenOff">,
): Promise<void> {
  const { stream } = await language.doStream(call)
  const reader = createAnswerReader(request)
  const writer = request.writer()
  const events = reply.events()
  try {
    for await (const part of stream) {
      for (const event of reader.take(part)) await events.send(writer.write(event))
    }
    reader.end()
  } catch (error) {
    if (!events.begun) throw error
    const failure = toGatewayError(error)
    onBrokenOff(failure)
    await events.send(writer.fail(failure))
  }
  events.end()
}

function rejection(): GatewayError {
  return new GatewayError(
    "This gateway does not accept tools (--policy reject). Send the request without tools, or start the gateway with --policy synthetic to read calls from the text.",
    { status: 400, label: "tools_not_supported", param: "tools" },
  )
}
