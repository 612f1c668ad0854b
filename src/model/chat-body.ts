import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider"
import { newId } from "../util/id.ts"
import { isRecord, parseJson } from "../util/json.ts"

/**
 * Caches the JSON of each message of a chat completions request. Every request carries the whole history; with the
 * cache, the provider package converts a message once and the conversion is kept as long as the message object lives.
 *
 * `model` hands the package only the messages that are not cached, `transformRequestBody` caches the result and
 * `fetch` sends the whole body. Use the three together, with a package that converts each message independently into
 * one message, and a tool message into one per result.
 */
export interface ChatBodyCache {
  model(inner: LanguageModelV4): LanguageModelV4
  transformRequestBody(body: Body): Body
  fetch(inner: typeof fetch): typeof fetch
}

type Body = Record<string, unknown>

interface PendingRequest {
  prompt: readonly LanguageModelV4Message[]
  uncached: readonly LanguageModelV4Message[]
  body?: string
}

/** Creates a cache for the models of one server. */
export function createChatBodyCache(): ChatBodyCache {
  const cached = new WeakMap<LanguageModelV4Message, string>()
  const pending = new Map<string, PendingRequest>()

  async function send<T>(
    call: LanguageModelV4CallOptions,
    inner: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const { prompt } = call
    const uncached = [...new Set(prompt.filter((message) => !cached.has(message)))]
    const id = newId("call")
    pending.set(id, { prompt, uncached })
    try {
      // The package passes the id through as the first message.
      return await inner({ ...call, prompt: [{ role: "system", content: id }, ...uncached] })
    } finally {
      pending.delete(id)
    }
  }

  return {
    model: (inner) => ({
      specificationVersion: "v4",
      provider: inner.provider,
      modelId: inner.modelId,
      get supportedUrls() {
        return inner.supportedUrls
      },
      doStream: (call) => send(call, (given) => inner.doStream(given)),
      doGenerate: (call) => send(call, (given) => inner.doGenerate(given)),
    }),
    transformRequestBody(body) {
      const [first, ...converted] = body.messages as Body[]
      const id = String(first?.content)
      const request = pending.get(id)
      if (request === undefined) throw new Error("The request was not made by a model of this cache.")
      for (const message of request.uncached) {
        const texts = converted.splice(0, convertedCount(message)).map((value) => JSON.stringify(value))
        cached.set(message, texts.join(","))
      }
      const messages = request.prompt.map((message) => cached.get(message)).filter(Boolean)
      const settings = JSON.stringify({ ...body, messages: undefined })
      request.body = `${settings.slice(0, -1)},"messages":[${messages.join(",")}]}`
      return { pendingRequest: id }
    },
    fetch: (inner) => (input, init) => {
      const given = typeof init?.body === "string" ? parseJson(init.body) : undefined
      const id = given?.ok && isRecord(given.value) ? String(given.value.pendingRequest) : ""
      return inner(input, { ...init, body: pending.get(id)?.body ?? init?.body })
    },
  }
}

/** The number of messages that the package makes of one. */
function convertedCount(message: LanguageModelV4Message): number {
  return message.role === "tool" ? message.content.filter(({ type }) => type === "tool-result").length : 1
}
