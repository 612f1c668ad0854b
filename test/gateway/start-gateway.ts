import OpenAI, { APIError } from "openai"
import { onTestFinished } from "vitest"
import { type GatewayOptions, startGateway } from "../../src/gateway/server.ts"
import { httpFetch } from "../../src/model/http-fetch.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"

/** Starts an upstream with a script, a gateway for it, and OpenAI's client of the gateway. */
export async function setUp(script: Script, options: Partial<GatewayOptions> = {}) {
  const upstream = await startModelServer({ script, models: ["m", "other"] })
  onTestFinished(upstream.close)
  return { upstream, ...(await gatewayFor(upstream.url, options)) }
}

/** Starts a gateway for an upstream, and creates a client of the gateway. The gateway is closed after the test. */
export async function gatewayFor(upstream: string, options: Partial<GatewayOptions> = {}) {
  const gateway = await startGateway({ upstream, policy: "synthetic", port: 0, fetch: httpFetch, ...options })
  onTestFinished(() => gateway.close())
  const client = new OpenAI({ baseURL: gateway.url, apiKey: "client-key", maxRetries: 0 })
  return { gateway, client }
}

/** The offered tools. */
export const tools: OpenAI.Chat.Completions.ChatCompletionTool[] = ["read", "write"].map((name) => ({
  type: "function",
  function: {
    name,
    description: `To ${name} a file.`,
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
}))
/** The prompt of the tests. */
export const messages: OpenAI.Chat.Completions.ChatCompletionMessageParam[] = [
  { role: "user", content: "Go." },
]

/** Returns a call as text. */
export function called(path: string, tool = "read"): string {
  return `<tool_call>\n{"name": "${tool}", "arguments": {"path": "${path}"}}\n</tool_call>`
}

/** Returns the body of the last request to the upstream. */
export function lastBody(upstream: ModelServer) {
  const last = upstream.requests.at(-1)
  if (last === undefined) throw new Error("The upstream was not asked.")
  return last.body
}

/** Returns the API error with which the promise rejects. Throws if it resolves, or rejects with another error. */
export async function failure(promise: PromiseLike<unknown>): Promise<APIError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof APIError) return error
  throw new Error(`Not an error of the API: ${String(error)}`)
}

/** Returns the chunks of a stream, and the message that they form. */
export async function collect(
  client: OpenAI,
  body: Partial<OpenAI.Chat.Completions.ChatCompletionCreateParamsStreaming>,
) {
  const chunks: OpenAI.Chat.Completions.ChatCompletionChunk[] = []
  const stream = await client.chat.completions.create({ model: "m", messages, tools, ...body, stream: true })
  for await (const chunk of stream) chunks.push(chunk)
  const calls = new Map<number, { id: string; name: string; arguments: string; pieces: number }>()
  let text = ""
  for (const { delta } of chunks.flatMap((chunk) => chunk.choices)) {
    text += delta.content ?? ""
    for (const { index, id, function: named } of delta.tool_calls ?? []) {
      const call = calls.get(index) ?? { id: id ?? "", name: named?.name ?? "", arguments: "", pieces: -1 }
      calls.set(index, {
        ...call,
        arguments: call.arguments + (named?.arguments ?? ""),
        pieces: call.pieces + 1,
      })
    }
  }
  const finish = chunks
    .flatMap(({ choices }) => choices.map((choice) => choice.finish_reason))
    .filter(Boolean)
  return { chunks, text, calls: [...calls.values()], finish }
}
