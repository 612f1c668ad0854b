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

/** The messages of one conversation as they went out the last time. */
interface SentMessages {
  messages: readonly LanguageModelV4Message[]
  json: string
}

/** A writer for the models of one server. Its three parts only work together. */
export function createChatBodyWriter(): ChatBodyWriter {
  const written = new WeakMap<LanguageModelV4Message, string>()
  const pending = new Map<string, PendingRequest>()
  const sent = new WeakMap<LanguageModelV4Message, SentMessages>()
  const writeTools = createToolWriter()

  async function ask<T>(
    call: LanguageModelV4CallOptions,
    inner: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const { prompt } = call
    const known = sentBefore(prompt)?.messages.length ?? 0
    const fresh = [...new Set(prompt.slice(known).filter((message) => !written.has(message)))]
    const mark = newId("call")
    pending.set(mark, { prompt, fresh })
    try {
      return await inner({ ...call, prompt: markEach(fresh, mark) })
    } finally {
      pending.delete(mark)
    }
  }

  /** What went out of this conversation the last time, if the prompt only adds to it. */
  function sentBefore(prompt: readonly LanguageModelV4Message[]): SentMessages | undefined {
    const before = prompt[0] && sent.get(prompt[0])
    return before?.messages.every((message, index) => message === prompt[index]) ? before : undefined
  }

  /** The messages of a prompt as texts that commas join to their JSON. */
  function messageTexts(prompt: readonly LanguageModelV4Message[]): string[] {
    const before = sentBefore(prompt)
    const added = prompt.slice(before?.messages.length ?? 0).map((message) => written.get(message) ?? "")
    return [before?.json ?? "", ...added].filter((text) => text !== "")
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
      const { prompt } = request
      const { messages: _, ...others } = body
      const fields = writeFields(others, Array.isArray(body.tools) ? { tools: writeTools(body.tools) } : {})
      const start = `{${[...fields, '"messages":['].join(",")}`
      request.body = joinWithin(start, messageTexts(prompt), "]}")
      // A part of the whole: it takes no memory of its own.
      if (prompt[0]) sent.set(prompt[0], { messages: prompt, json: request.body.slice(start.length, -2) })
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

/** The fields of an object as JSON, some of them being JSON already. */
function writeFields(fields: Body, ready: Record<string, string>): string[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined) return []
    return [`${asciiJson(key)}:${ready[key] ?? asciiJson(value)}`]
  })
}

/** Joined by commas between a start and an end. All in one step, so that it is copied once: it may be megabytes. */
function joinWithin(start: string, texts: readonly string[], end: string): string {
  const whole = texts.length === 0 ? [""] : [...texts]
  whole[0] = start + whole[0]
  whole.push((whole.pop() ?? "") + end)
  return whole.join(",")
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
