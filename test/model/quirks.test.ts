import { globSync } from "node:fs"
import { basename, resolve } from "node:path"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { OfferedTool } from "../../src/model/call-options.ts"
import { toPrompt } from "../../src/model/history-to-prompt.ts"
import { type ModelInfo, type ProviderConfig, parseModelName } from "../../src/model/model.ts"
import { createModels } from "../../src/model/providers.ts"
import { quirksOf } from "../../src/model/quirks.ts"
import { type StepRequest, streamStep } from "../../src/model/stream.ts"
import { readFeatures } from "../../src/tools/availability.ts"
import { builtinTools } from "../../src/tools/index.ts"
import { isRecord } from "../../src/util/json.ts"
import { toJsonSchema } from "../../src/util/json-schema.ts"
import { assistant, call, completed, user } from "./history.ts"
import { startServer } from "./server.ts"

const model = (modelID: string, family: "openai-compatible" | "anthropic" = "openai-compatible") => ({
  ref: { providerID: "p", modelID },
  name: modelID,
  toolCall: true,
  limit: {},
  family,
})

describe("call ids", () => {
  test("are nine distinct letters and digits for Mistral", () => {
    const callID = quirksOf(model("devstral-small")).callID
    expect(callID?.("abcDEF123")).toBe("abcDEF123")
    const ids = Array.from({ length: 5_000 }, (_, index) => `call_${index}_${index % 7}`)
    expect(new Set(ids.map((id) => callID?.(id))).size).toBe(ids.length)
    fc.assert(fc.property(fc.string(), (id) => /^[A-Za-z0-9]{9}$/.test(callID?.(id) ?? "")))
  })

  test("contain only valid characters for Claude, on any server", () => {
    for (const info of [model("anthropic/claude-sonnet-4.5"), model("m", "anthropic")])
      expect(quirksOf(info).callID?.("call.1:é")).toBe("call_1__")
  })

  test("are the same in call and result", () => {
    const messages = [user("go"), assistant(call("read", "call_1_0", completed({}, "x")))]
    const text = JSON.stringify(toPrompt({ system: [], messages, model: model("mistral-large") }))
    const id = quirksOf(model("mistral-large")).callID?.("call_1_0")
    expect(text.split(`"toolCallId":"${id}"`)).toHaveLength(3)
    expect(text).not.toContain("call_1_0")
  })
})

test("adds an assistant message between results and the next message for Mistral", () => {
  const messages = [user("go"), assistant(call("read", "a", completed({}, "x"))), user("and now?")]
  const roles = (id: string) => toPrompt({ system: [], messages, model: model(id) }).map(({ role }) => role)
  expect(roles("mistral-large")).toEqual(["user", "assistant", "tool", "assistant", "user"])
  expect(roles("other")).toEqual(["user", "assistant", "tool", "user"])
})

test("uses the recommended temperature unless the agent sets one", async () => {
  expect(quirksOf(model("kimi-k2-0905")).temperature).toBe(0.6)
  expect(quirksOf(model("kimi-k2-thinking")).temperature).toBe(1)
  expect(quirksOf(model("gpt-5")).temperature).toBeUndefined()
  const kimi = { id: "test/kimi-k2" }
  expect((await bodyOf(kimi)).temperature).toBe(0.6)
  expect((await bodyOf(kimi, { temperature: 0 })).temperature).toBe(0)
})

test("sends cache marks to compatible servers only for Claude", async () => {
  const prompt = (info: ModelInfo) => toPrompt({ system: ["s"], messages: [user("go")], model: info })
  const marked = await bodyOf({ id: "test/anthropic/claude-sonnet-4.5" }, { prompt })
  expect(marked.messages).toEqual([
    { role: "system", content: "s", cache_control: { type: "ephemeral" } },
    { role: "user", content: "go", cache_control: { type: "ephemeral" } },
  ])
  expect(JSON.stringify(await bodyOf({ id: "test/m" }, { prompt }))).not.toContain("cache")
})

test("sends DeepSeek messages with their reasoning or with an empty one", async () => {
  const thought = assistant(
    { type: "reasoning", text: "hm", time: { start: 1 } },
    call("read", "a", completed({}, "x")),
  )
  const messages = [user("go"), assistant(call("read", "b", completed({}, "x"))), thought]
  const sent = async (id: string) => {
    const info = model(id)
    const own = messages.map(({ message, parts }) => ({ message: { ...message, model: info.ref }, parts }))
    const { messages: list } = await bodyOf(
      { id: `p/${id}` },
      { prompt: () => toPrompt({ system: [], messages: own, model: info }) },
    )
    return (list as Record<string, unknown>[]).flatMap((message) =>
      message.role === "assistant" ? [message.reasoning_content] : [],
    )
  }
  expect(await sent("deepseek-chat")).toEqual(["", "hm"])
  expect(await sent("other")).toEqual([undefined, "hm"])
})

test("sends the session as prompt_cache_key to OpenAI unless the user sets it", async () => {
  const openai = { id: "openai/gpt-5" }
  expect(await bodyOf(openai, { cacheKey: "ses_1" })).toMatchObject({ prompt_cache_key: "ses_1" })
  const own = { cacheKey: "ses_1", providerOptions: { promptCacheKey: "mine" } }
  expect(await bodyOf(openai, own)).toMatchObject({ prompt_cache_key: "mine" })
  expect(await bodyOf({ id: "test/m" }, { cacheKey: "ses_1" })).not.toHaveProperty("prompt_cache_key")
})

describe("schemas of built-in tools", () => {
  test.each([
    ["openai", { id: "openai/gpt-5" }],
    ["anthropic", { id: "anthropic/claude-sonnet-4-5" }],
    ["google", { id: "google/gemini-2.5-pro" }],
    ["openai-compatible", { id: "test/m" }],
    ["gemini-compatible", { id: "test/gemini-2.5-pro" }],
    ["kimi-compatible", { id: "test/kimi-k2" }],
  ])("to %s", async (name, { id }) => {
    const schemas = schemasIn(await bodyOf({ id }, { tools: await offered() }))
    expect(Object.keys(schemas).sort()).toEqual(documented)
    expect(Object.values(schemas).every(isRecord)).toBe(true)
    await expect(`${JSON.stringify(schemas, null, 2)}\n`).toMatchFileSnapshot(
      `__snapshots__/tool-schemas-${name}.snap`,
    )
  })
})

/** The pages of the built-in tools: no tool is left out of the snapshots. */
const documented = globSync("*.md", { cwd: resolve(import.meta.dirname, "../../docs/tools") })
  .map((file) => basename(file, ".md"))
  .filter((name) => name !== "index" && name !== "README")
  .sort()

/** The tools as each provider's format has them, by name. */
function schemasIn(body: Record<string, unknown>): Record<string, unknown> {
  const [first] = Array.isArray(body.tools) ? body.tools : []
  const list: unknown[] =
    isRecord(first) && Array.isArray(first.functionDeclarations)
      ? first.functionDeclarations
      : (body.tools as unknown[])
  return Object.fromEntries(
    list.map((entry) => {
      const tool = isRecord(entry) && isRecord(entry.function) ? entry.function : entry
      const { name, parameters, input_schema, parametersJsonSchema } = tool as Record<string, unknown>
      return [String(name), parameters ?? input_schema ?? parametersJsonSchema]
    }),
  )
}

async function offered(): Promise<OfferedTool[]> {
  const features = readFeatures({ environment: {}, experimental: {}, search: false })
  const tools = builtinTools({
    bash: { environment: () => ({}), sandboxed: true },
    task: { subagents: () => [] },
    skills: { offered: () => [], find: () => undefined },
    features,
    search: { name: "none", search: () => Promise.reject(new Error("there is no search here")) },
  })
  return Promise.all(
    tools.map(async ({ tool }) => {
      const { parameters, jsonSchema } = await tool.init({
        agent: { name: "build", mode: "primary", permission: [] },
      })
      return { name: tool.id, description: "d", inputSchema: { ...(jsonSchema ?? toJsonSchema(parameters)) } }
    }),
  )
}

/** Returns the request to a model's server, which answers with an error that ends the step. */
async function bodyOf(
  { id }: { id: string },
  {
    prompt = (info) => toPrompt({ system: [], messages: [user("hi")], model: info }),
    ...request
  }: Partial<Pick<StepRequest, "tools" | "temperature" | "cacheKey" | "providerOptions">> & {
    prompt?: (info: ModelInfo) => StepRequest["prompt"]
  } = {},
): Promise<Record<string, unknown>> {
  await using server = await startServer((response) => {
    response.writeHead(400).end("{}")
  })
  const ref = parseModelName(id)
  const provider: ProviderConfig = { options: { baseURL: `${server.origin}/v1`, apiKey: "k" } }
  const models = createModels({
    config: { [ref.providerID]: provider },
    credentials: { key: async () => undefined },
    environment: {},
  })
  const chosen = await models.get(ref)
  const { info } = chosen
  const events = streamStep({
    language: await chosen.language(),
    info,
    prompt: prompt(info),
    tools: [],
    signal: new AbortController().signal,
    ...request,
  })
  await expect(events.next()).rejects.toThrow("400")
  return server.received[0]?.body ?? {}
}
