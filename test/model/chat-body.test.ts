import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider"
import fc from "fast-check"
import { expect, test } from "vitest"
import { createChatBodyCache } from "../../src/model/chat-completions.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 200 }),
)
const textPart = fc.record({ type: fc.constant("text" as const), text })
const filePart = fc.record({
  type: fc.constant("file" as const),
  mediaType: fc.constant("image/png"),
  data: fc.constant({ type: "data" as const, data: "iVBORw0KGgo=" }),
})
const callPart = fc.record({
  type: fc.constant("tool-call" as const),
  toolCallId: text,
  toolName: text,
  input: fc.dictionary(text, fc.jsonValue()),
})
const resultPart = fc.record({
  type: fc.constant("tool-result" as const),
  toolCallId: text,
  toolName: text,
  output: fc.record({ type: fc.constant("text" as const), value: text }),
})
const reasoningPart = fc.record({ type: fc.constant("reasoning" as const), text })

/** Any message, including later system prompts and results without a call. */
const message: fc.Arbitrary<LanguageModelV4Message> = fc.oneof(
  fc.record({ role: fc.constant("system" as const), content: text }),
  fc.record({ role: fc.constant("user" as const), content: fc.array(fc.oneof(textPart, filePart)) }),
  fc.record({
    role: fc.constant("assistant" as const),
    content: fc.array(fc.oneof(textPart, callPart, reasoningPart), { maxLength: 4 }),
  }),
  fc.record({ role: fc.constant("tool" as const), content: fc.array(resultPart, { maxLength: 3 }) }),
)

const tool = fc.record({
  type: fc.constant("function" as const),
  name: text,
  description: text,
  inputSchema: fc.record({ type: fc.constant("object" as const), description: text }),
})

const settings: fc.Arbitrary<Partial<LanguageModelV4CallOptions>> = fc.record(
  {
    tools: fc.array(tool, { maxLength: 3 }),
    toolChoice: fc.constantFrom({ type: "auto" as const }, { type: "none" as const }),
    temperature: fc.double({ noNaN: true, noDefaultInfinity: true }),
    maxOutputTokens: fc.nat(),
    stopSequences: fc.array(text, { maxLength: 2 }),
  },
  { requiredKeys: [] },
)

/** A server that records request bodies and returns an empty answer. */
function listener() {
  const bodies: string[] = []
  const listen = (async (_, init) => {
    bodies.push(init?.body instanceof Uint8Array ? Buffer.from(init.body).toString() : String(init?.body))
    return new Response("data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } })
  }) satisfies typeof fetch
  return { bodies, listen }
}

const server = { name: "p", baseURL: "http://127.0.0.1:1/v1", includeUsage: true }

function plainModel() {
  const { bodies, listen } = listener()
  return { bodies, model: createOpenAICompatible({ ...server, fetch: listen })("m") }
}

function cachingModel(options?: { asBytes: boolean }) {
  const { bodies, listen } = listener()
  const { model, transformRequestBody, fetch } = createChatBodyCache()
  const create = createOpenAICompatible({ ...server, transformRequestBody, fetch: fetch(listen, options) })
  return { bodies, model: model(create("m")) }
}

async function ask(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<void> {
  const { stream } = await model.doStream(options)
  for await (const _ of stream);
}

test("sends the body that the package alone would send, with new and repeated messages", async () => {
  const history = fc.array(message, { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(history, history, settings, settings, async (first, second, some, other) => {
      const [plain, caching] = [plainModel(), cachingModel()]
      const requests = [
        { ...some, prompt: first },
        { ...some, prompt: [...first, ...second] },
        { ...other, prompt: [...second, ...first, ...second] },
        { ...some, prompt: first },
      ]
      for (const request of requests) {
        await ask(plain.model, request)
        await ask(caching.model, request)
      }
      expect(caching.bodies.map((body) => JSON.parse(body))).toEqual(
        plain.bodies.map((body) => JSON.parse(body)),
      )
    }),
  )
})

test("sends the same body as text and as bytes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 6 }), settings, async (prompt, some) => {
      const [asText, asBytes] = [cachingModel(), cachingModel({ asBytes: true })]
      for (const { model } of [asText, asBytes, asBytes]) await ask(model, { ...some, prompt })
      const [body] = asText.bodies
      expect(asBytes.bodies).toEqual([body, body])
    }),
  )
})

test("keeps the messages of concurrent requests apart", async () => {
  const said = (text: string): LanguageModelV4Message => ({ role: "user", content: [{ type: "text", text }] })
  const shared = said("shared")
  const { bodies, model } = cachingModel()
  const prompts = ["a", "b", "c"].map((name) => [shared, said(name)])
  await Promise.all(prompts.map((prompt) => ask(model, { prompt })))
  const sent = bodies.map((body) =>
    JSON.parse(body).messages.map(({ content }: { content: string }) => content),
  )
  expect(sent.toSorted()).toEqual([
    ["shared", "a"],
    ["shared", "b"],
    ["shared", "c"],
  ])
})

test("passes each message to the package once", async () => {
  const given: number[] = []
  const cache = createChatBodyCache()
  const { listen } = listener()
  const create = createOpenAICompatible({
    ...server,
    transformRequestBody(body) {
      given.push(JSON.stringify(body.messages).split("said").length - 1)
      return cache.transformRequestBody(body)
    },
    fetch: cache.fetch(listen),
  })
  const model = cache.model(create("m"))
  const messages = ["one", "two"].map(
    (name): LanguageModelV4Message => ({ role: "user", content: [{ type: "text", text: `said ${name}` }] }),
  )
  await ask(model, { prompt: messages.slice(0, 1) })
  await ask(model, { prompt: messages })
  expect(given).toEqual([1, 1])
})
