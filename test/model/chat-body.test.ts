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
    bodies.push(Array.isArray(init?.body) ? Buffer.concat(init.body).toString() : String(init?.body))
    return new Response("data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } })
  }) satisfies typeof fetch
  return { bodies, listen }
}

const server = { name: "p", baseURL: "http://127.0.0.1:1/v1", includeUsage: true }

function plainModel() {
  const { bodies, listen } = listener()
  return { bodies, model: createOpenAICompatible({ ...server, fetch: listen })("m") }
}

function cachingModel(options?: { inPieces: boolean }) {
  const { bodies, listen } = listener()
  /** Number of messages that each request gave to the package, without the message that carries the id. */
  const given: number[] = []
  /** Blocks of memory of the bodies that were sent in pieces. */
  const blocks = new Set<ArrayBufferLike>()
  const cache = createChatBodyCache()
  const create = createOpenAICompatible({
    ...server,
    transformRequestBody(body) {
      given.push(body.messages.length - 1)
      return cache.transformRequestBody(body)
    },
    fetch: cache.fetch((input, init) => {
      if (Array.isArray(init?.body)) blocks.add(init.body[1].buffer)
      return listen(input, init)
    }, options),
  })
  return { bodies, given, blocks, model: cache.model(create("m")) }
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

test("sends the same body as text and in pieces", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 6 }), settings, async (prompt, some) => {
      const [asText, inPieces] = [cachingModel(), cachingModel({ inPieces: true })]
      for (const { model } of [asText, inPieces, inPieces]) await ask(model, { ...some, prompt })
      const [body] = asText.bodies
      expect(inPieces.bodies).toEqual([body, body])
    }),
  )
})

test("keeps the messages of concurrent requests apart", async () => {
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

test("passes each message to the package once, also when the system prompt changes", async () => {
  const { bodies, given, model } = cachingModel()
  const messages = ["one", "two", "three"].map(said)
  for (const count of [1, 2, 3, 3])
    await ask(model, { prompt: [{ role: "system", content: `${count}` }, ...messages.slice(0, count)] })
  expect(given).toEqual([2, 2, 2, 1])
  expect(bodies.map((body) => JSON.parse(body).messages[0].content)).toEqual(["1", "2", "3", "3"])
})

test("passes only the last messages to the package again when they carry cache marks", async () => {
  const { given, model } = cachingModel()
  const messages = Array.from({ length: 20 }, (_, index) => said(`${index}`))
  for (let count = 2; count <= messages.length; count += 2) {
    const marked = messages.slice(count - 2, count).map((message) => ({ ...message }))
    await ask(model, { prompt: [...messages.slice(0, count - 2), ...marked] })
  }
  expect(given).toEqual([2, 4, ...Array(8).fill(4)])
})

test("sends a growing conversation from few blocks of memory", async () => {
  const { blocks, bodies, model } = cachingModel({ inPieces: true })
  const prompt: LanguageModelV4Message[] = []
  for (let step = 0; step < 300; step += 1) {
    prompt.push(said(`step ${step}`))
    await ask(model, { prompt })
  }
  expect(JSON.parse(bodies.at(-1) ?? "").messages).toHaveLength(300)
  const bytes = [...blocks].reduce((sum, { byteLength }) => sum + byteLength, 0)
  expect(bytes).toBeLessThan(8 * (bodies.at(-1)?.length ?? 0))
})

function said(text: string): LanguageModelV4Message {
  return { role: "user", content: [{ type: "text", text }] }
}
