import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider"
import { newId } from "../util/id.ts"
import { asciiJson } from "./ascii-json.ts"

/**
 * Writes the bodies of requests in the chat completions format. The whole history goes out with every request; here
 * each of its messages is converted by the provider's package and turned into JSON once, and the JSON kept as long as
 * the message lives. So what a step costs does not grow with the session, but for the sending.
 *
 * The three belong together. The model hands its package only the messages that have no JSON yet,
 * `transformRequestBody` takes what the package made of them, and `fetch` sends the whole body in place of that. It takes
 * a package that converts each message by itself, whatever stands before and after it.
 */
export interface ChatBodyWriter {
  model(inner: LanguageModelV4): LanguageModelV4
  transformRequestBody(body: Body): Body
  fetch(inner: typeof fetch): typeof fetch
}

type Body = Record<string, unknown>

/** A request on its way through the package. */
interface PendingRequest {
  prompt: readonly LanguageModelV4Message[]
  /** The messages that the package is given. */
  fresh: readonly LanguageModelV4Message[]
  body?: string
}

/** A writer for the models of one server. Its three parts only work together. */
export function createChatBodyWriter(): ChatBodyWriter {
  const written = new WeakMap<LanguageModelV4Message, string>()
  const pending = new Map<string, PendingRequest>()
  const writeTools = createToolWriter()

  async function ask<T>(
    call: LanguageModelV4CallOptions,
    inner: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const { prompt } = call
    const fresh = [...new Set(prompt.filter((message) => !written.has(message)))]
    const mark = newId("call")
    pending.set(mark, { prompt, fresh })
    try {
      return await inner({ ...call, prompt: markEach(fresh, mark) })
    } finally {
      pending.delete(mark)
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
      doStream: (call) => ask(call, (given) => inner.doStream(given)),
      doGenerate: (call) => ask(call, (given) => inner.doGenerate(given)),
    }),
    transformRequestBody(body) {
      const converted = body.messages as readonly Body[]
      const mark = String(converted[0]?.content)
      const request = pending.get(mark)
      if (request === undefined) throw new Error("A request for this server did not come from its model.")
      splitAtMarks(converted, mark).forEach((messages, index) => {
        const message = request.fresh[index]
        if (message) written.set(message, messages.map(asciiJson).join(","))
      })
      const messages = request.prompt.flatMap((message) => written.get(message) || [])
      request.body = writeBody(body, {
        messages: `[${messages.join(",")}]`,
        ...(Array.isArray(body.tools) && { tools: writeTools(body.tools) }),
      })
      return { ...body, toJSON: () => mark }
    },
    fetch: (inner) => (input, init) => {
      const body = typeof init?.body === "string" && pending.get(init.body.slice(1, -1))?.body
      return inner(input, body ? { ...init, body } : init)
    },
  }
}

/** The messages with a mark before each, and one before all of them: where a request is without fresh ones it has one too. */
function markEach(messages: readonly LanguageModelV4Message[], mark: string): LanguageModelV4Message[] {
  const separator: LanguageModelV4Message = { role: "system", content: mark }
  return [separator, ...messages.flatMap((message) => [separator, message])]
}

/** What a package made of each of the messages that were marked: of one it may make several, or none. */
function splitAtMarks(converted: readonly Body[], mark: string): Body[][] {
  const groups: Body[][] = []
  for (const message of converted.slice(1)) {
    if (message.content === mark) groups.push([])
    else groups.at(-1)?.push(message)
  }
  return groups
}

/** The body as JSON, some of its fields being JSON already. */
function writeBody(body: Body, ready: Record<string, string>): string {
  const fields = Object.entries(body).flatMap(([key, value]) => {
    if (value === undefined) return []
    return [`${asciiJson(key)}:${ready[key] ?? asciiJson(value)}`]
  })
  return `{${fields.join(",")}}`
}

/** Writes lists of tools. The schema of a tool is the same object in each request, so it is written once. */
function createToolWriter(): (tools: readonly Body[]) => string {
  const known = new WeakMap<object, { described: Body; json: string }>()

  function write(tool: Body): string {
    const described = tool.function as Body
    const { parameters } = described
    if (typeof parameters !== "object" || parameters === null) return asciiJson(tool)
    const kept = known.get(parameters)
    if (kept && sameFields(kept.described, described)) return kept.json
    const json = asciiJson(tool)
    known.set(parameters, { described, json })
    return json
  }

  return (tools) => `[${tools.map(write).join(",")}]`
}

function sameFields(a: Body, b: Body): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}
