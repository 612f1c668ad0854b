import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import { describe, expect, test } from "vitest"
import { toPrompt } from "../../src/model/history-to-prompt.ts"
import type { Model, ProviderConfig } from "../../src/model/model.ts"
import { createModels, type ModelsDependencies } from "../../src/model/providers.ts"
import { streamStep } from "../../src/model/stream.ts"
import { assistant, call, completed, user } from "./history.ts"

/** A step in the middle of a turn: two results of one message are the last that was said. */
const messages = [
  user("Look."),
  assistant("I look.", call("read", "a", completed({}, "A")), call("read", "b", completed({}, "B"))),
]

interface Sent {
  headers: Headers
  body: Record<string, unknown>
}

describe("cache fields for compatible servers", () => {
  test.each([
    ["anthropic", { npm: "@ai-sdk/anthropic" }, "claude-sonnet-4-5"],
    ["openai", { npm: "@ai-sdk/openai", api: "chat" }, "gpt-5"],
    ["openai-responses", { npm: "@ai-sdk/openai", api: "responses" }, "gpt-5"],
    ["litellm", at("https://models.test/v1"), "claude-sonnet-4-5"],
    ["openrouter-claude", at("https://openrouter.ai/api/v1"), "anthropic/claude-sonnet-4.5"],
    ["openrouter-qwen", at("https://openrouter.ai/api/v1"), "qwen/qwen3-coder-plus"],
    ["alibaba", at("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"), "qwen3-coder-plus"],
    ["azure", at("https://us.openai.azure.com/openai/v1"), "my-deployment"],
    ["xai", at("https://api.x.ai/v1"), "grok-4"],
    ["mistral", at("https://api.mistral.ai/v1"), "devstral-medium"],
    ["other", at("http://127.0.0.1:8000/v1"), "qwen3-coder"],
  ] as const)("%s", async (name, provider, modelID) => {
    const { headers, body } = await sentBy(provider, modelID)
    const seen = {
      system: body.system,
      input: body.input,
      messages: body.messages,
      prompt_cache_key: body.prompt_cache_key,
      "x-grok-conv-id": headers.get("x-grok-conv-id") ?? undefined,
    }
    await expect(`${JSON.stringify(seen, null, 2)}\n`).toMatchFileSnapshot(`__snapshots__/cache-${name}.snap`)
    expect(JSON.stringify(body).split('"ephemeral"').length - 1).toBeLessThanOrEqual(4)
  })
})

describe("cache options for other packages", () => {
  test.each([
    ["bedrock", "@ai-sdk/amazon-bedrock", "anthropic.claude-sonnet-4-5"],
    ["openrouter-package", "@openrouter/ai-sdk-provider", "anthropic/claude-sonnet-4.5"],
    ["alibaba-package", "@ai-sdk/alibaba", "qwen3-coder-plus"],
    ["azure-package", "@ai-sdk/azure", "my-deployment"],
    ["xai-package", "@ai-sdk/xai", "grok-4"],
    ["mistral-package", "@ai-sdk/mistral", "devstral-medium"],
    ["other-package", "@ai-sdk/groq", "qwen3-coder"],
  ])("%s", async (name, npm, modelID) => {
    const { prompt, providerOptions, headers } = await toldTo(npm, modelID)
    const marks = prompt.map(({ role, content, providerOptions: whole }) => ({
      role,
      ...(whole && { message: whole }),
      ...(Array.isArray(content) && { parts: content.map((part) => part.providerOptions ?? null) }),
    }))
    const seen = { marks, providerOptions, headers }
    await expect(`${JSON.stringify(seen, null, 2)}\n`).toMatchFileSnapshot(`__snapshots__/cache-${name}.snap`)
  })
})

test("prefers a configured header to the session key and keeps configured options", async () => {
  const { headers } = await sentBy(at("https://api.x.ai/v1"), "grok-4", {
    headers: { "x-grok-conv-id": "mine" },
  })
  expect(headers.get("x-grok-conv-id")).toBe("mine")
  const openai = { npm: "@ai-sdk/openai", models: { "gpt-5": { options: { reasoningEffort: "high" } } } }
  const { body } = await sentBy(openai, "gpt-5")
  expect(body).toMatchObject({ prompt_cache_key: "ses_1", reasoning: { effort: "high" } })
})

function at(baseURL: string): ProviderConfig {
  return { options: { baseURL } }
}

/** Returns the request to a server that does not exist. The provider has a custom name. */
async function sentBy(
  provider: ProviderConfig,
  modelID: string,
  further: { headers?: Record<string, string> } = {},
): Promise<Sent> {
  let sent: Sent | undefined
  await ask(
    { ...provider, options: { ...provider.options, apiKey: "k" } },
    modelID,
    {
      fetch: async (_, init) => {
        sent = { headers: new Headers(init?.headers), body: JSON.parse(String(init?.body)) }
        return new Response("{}", { status: 400 })
      },
    },
    further,
  )
  if (sent === undefined) throw new Error("Nothing was sent.")
  return sent
}

/** Returns the call to a package that is not installed. */
async function toldTo(npm: string, modelID: string): Promise<LanguageModelV4CallOptions> {
  let told: LanguageModelV4CallOptions | undefined
  const languageModel = (): LanguageModelV4 => ({
    specificationVersion: "v4",
    provider: "p",
    modelId: modelID,
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("400")),
    doStream(options) {
      told = options
      return Promise.reject(new Error("400"))
    },
  })
  await ask({ npm }, modelID, { importPackage: async () => ({ createProvider: () => ({ languageModel }) }) })
  if (told === undefined) throw new Error("The package was not asked.")
  return told
}

async function ask(
  provider: ProviderConfig,
  modelID: string,
  dependencies: Partial<ModelsDependencies>,
  further: { headers?: Record<string, string> } = {},
): Promise<void> {
  const models = createModels({
    config: { work: provider },
    credentials: { key: async () => "k" },
    environment: {},
    ...dependencies,
  })
  const model: Model = await models.get({ providerID: "work", modelID })
  const own = messages.map((entry) => ({
    ...entry,
    message: { ...entry.message, model: model.info.ref },
  })) as typeof messages
  const events = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: toPrompt({ system: ["Rules.", "Project."], messages: own, model: model.info }),
    tools: [],
    cacheKey: "ses_1",
    signal: new AbortController().signal,
    ...further,
  })
  await expect(events.next()).rejects.toThrow("400")
}
