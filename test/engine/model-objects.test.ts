import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { expect, onTestFinished, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import { callOptions } from "../../src/model/call-options.ts"
import type { LanguageModel } from "../../src/model/model.ts"
import { describeLanguage } from "../../src/model/provider-table.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { startEngine } from "../session/engine.ts"
import { run, tool } from "../session/run.ts"

/** An image of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const photo = tool("photo", async () => ({
  title: "photo",
  output: "A photo.",
  attachments: [{ type: "file", mime: "image/png", url: `data:image/png;base64,${pixel}` }],
}))

/** Runs a prompt whose first step takes a photo. Returns the session and the body of the second request as text. */
async function secondRequest(
  create: (url: string) => LanguageModel,
  options: Partial<TackleOptions> = {},
): Promise<{ body: string; sessionID: string }> {
  const server = await startModelServer({
    script: [{ calls: [{ name: "photo", arguments: {} }] }, { text: "Seen." }],
  })
  onTestFinished(server.close)
  await using engine = await startEngine([], {
    model: create(server.url),
    tools: [photo],
    permission: { "*": "allow" },
    ...options,
  })
  const { end, session } = await run(engine)
  expect(end).toMatchObject({ status: "completed", text: "Seen." })
  return { body: JSON.stringify(server.requests[1]?.body), sessionID: session.id }
}

const openai = (baseURL: string) => createOpenAI({ baseURL, apiKey: "k" })

test.for([
  ["chat completions", (url: string) => openai(url).chat("gpt-5")],
  ["responses", (url: string) => openai(url).responses("gpt-5")],
] as const)("an OpenAI model object for %s gets images and the cache key", async ([_, create]) => {
  const { body, sessionID } = await secondRequest(create)
  expect(body).toContain(pixel)
  expect(JSON.parse(body)).toMatchObject({ prompt_cache_key: sessionID })
})

test("a model object gets the tools of its provider", async () => {
  const only = (id: string, provider: string) => tool(id, async () => "", { providers: [provider] })
  const tools = [photo, only("for_openai", "openai"), only("for_anthropic", "anthropic")]
  const { body } = await secondRequest((url) => openai(url).responses("gpt-5"), { tools })
  expect(body).toContain("for_openai")
  expect(body).not.toContain("for_anthropic")
})

test("an Anthropic model object gets images and cache marks", async () => {
  const { body } = await secondRequest((baseURL) =>
    createAnthropic({ baseURL, apiKey: "k" })("claude-sonnet-4-5"),
  )
  expect(body).toContain(pixel)
  expect(body.split('"cache_control":{"type":"ephemeral"}').length - 1).toBeGreaterThanOrEqual(3)
})

test("a compatible model object gets images only if the config of its provider says so", async () => {
  const create = (baseURL: string) => createOpenAICompatible({ name: "local", baseURL })("m")
  expect((await secondRequest(create)).body).toContain("this model accepts only text")
  const providers = { local: { models: { m: { attachment: true } } } }
  expect((await secondRequest(create, { providers })).body).toContain(pixel)
})

test("a model object that declares image support gets images", async () => {
  const supportedUrls = () => ({ "image/*": [/^https:/] })
  const create = (baseURL: string) => createOpenAICompatible({ name: "corp", baseURL, supportedUrls })("m")
  expect((await secondRequest(create)).body).toContain(pixel)
})

test.for([
  ["azure.responses", "promptCacheKey", "openai"],
  ["mistral.chat", "promptCacheKey", "mistral"],
  ["openai.chat", "promptCacheKey", "openai"],
] as const)("%s gets the cache key as %s of %s", async ([provider, option, key]) => {
  const language = { ...openai("http://127.0.0.1:1").chat("m"), provider, modelId: "m" } as LanguageModel
  const info = await describeLanguage(language, {})
  const { providerOptions } = callOptions(
    { language, info, prompt: [], tools: [], cacheKey: "ses_1" },
    new AbortController().signal,
  )
  expect(providerOptions).toEqual({ [key]: { [option]: "ses_1" } })
})
