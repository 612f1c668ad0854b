import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { createCredentials } from "../../src/model/credentials.ts"
import { ModelNotFoundError } from "../../src/model/errors.ts"
import { toPrompt } from "../../src/model/history-to-prompt.ts"
import { type Model, ProviderConfig, parseModelName } from "../../src/model/model.ts"
import { createModels, type ModelsDependencies } from "../../src/model/providers.ts"
import { type StepEvent, streamStep } from "../../src/model/stream.ts"
import { UsageError } from "../../src/util/errors.ts"
import { assistant, call, completed, failed, user } from "./history.ts"
import { sendEvents, shortAnswer, startServer } from "./server.ts"

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "tackle-model-"))
})

afterEach(() => rm(directory, { recursive: true, force: true }))

function models(dependencies: Partial<ModelsDependencies> = {}) {
  const environment = dependencies.environment ?? {}
  const credentials = createCredentials({ environment, authFile: join(directory, "auth.json") })
  return createModels({ config: {}, credentials, environment, ...dependencies })
}

const named = parseModelName

async function ask(model: Model, signal = new AbortController().signal): Promise<StepEvent[]> {
  const messages = [
    user("list"),
    assistant(
      "I will.",
      call("bash", "call_1", completed({ command: "ls" }, "a.txt")),
      call("read", "call_2", failed({ filePath: "b" }, "File not found")),
    ),
  ]
  const events: StepEvent[] = []
  for await (const event of streamStep({
    language: await model.language(),
    info: model.info,
    prompt: toPrompt({ system: ["Be brief."], messages, model: model.info }),
    tools: [
      {
        name: "bash",
        description: "Runs a command",
        inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
      },
    ],
    signal,
  })) {
    events.push(event)
  }
  return events
}

describe("model names", () => {
  test("splits provider and model at the first slash", () => {
    expect(named("openrouter/meta/llama")).toEqual({ providerID: "openrouter", modelID: "meta/llama" })
  })

  test.each(["gpt-5", "/x", "openai/", ""])("%j is refused with the form and what is known", (name) => {
    expect(() => parseModelName(name, ["tackle/offline"])).toThrow(UsageError)
    expect(() => parseModelName(name, ["tackle/offline"])).toThrow(/provider\/model.*tackle\/offline/)
  })

  test("accepts any model of a known provider without config", async () => {
    const model = await models().get(named("openai/gpt-99"))
    expect(model.info).toMatchObject({ ref: named("openai/gpt-99"), toolCall: true, attachment: true })
  })

  test("rejects an unknown provider or model with similar names", async () => {
    const config = { mine: { models: { alpha: {} } } }
    await expect(models({ config }).get(named("mine/alpah"))).rejects.toThrow(ModelNotFoundError)
    await expect(models({ config }).get(named("mine/alpah"))).rejects.toThrow("Did you mean mine/alpha")
    const refused = models({ config }).get(named("mine/something"))
    await expect(refused).rejects.toThrow(/Known: mine\/alpha, tackle\/offline, openai\/…(?!.*mine\/…)/)
    const many = {
      mine: { models: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`m${at}`, {}])) },
    }
    await expect(models({ config: many }).get(named("mine/something"))).rejects.toThrow(/m19 and \d+ more \(/)
    await expect(models().get(named("nowhere/x"))).rejects.toThrow(/The model nowhere\/x is unknown/)
    await expect(models().get(named("constructor/x"))).rejects.toThrow(ModelNotFoundError)
    await expect(models().get(named("tackle/other"))).rejects.toThrow("tackle/offline")
  })

  test("lists the configured models and the built-in one", () => {
    const config = {
      mine: {
        models: {
          alpha: {
            name: "Alpha",
            tool_call: false,
            limit: { context: 1000 },
            cost: { input: 1, output: 2, cache_read: 0.5 },
          },
        },
      },
    }
    expect(models({ config }).list()).toMatchObject([
      {
        ref: { providerID: "mine", modelID: "alpha" },
        name: "Alpha",
        toolCall: false,
        limit: { context: 1000 },
        cost: { input: 1, output: 2, cacheRead: 0.5 },
        attachment: false,
      },
      { ref: { providerID: "tackle", modelID: "offline" } },
    ])
  })

  test("parses the config, rejects unknown keys and keeps unknown options", () => {
    const options = { baseURL: "http://x", organization: "o" }
    expect(ProviderConfig.parse({ options }).options).toEqual(options)
    expect(ProviderConfig.safeParse({ model: {} }).success).toBe(false)
    expect(ProviderConfig.safeParse({ models: { a: { tools: true } } }).success).toBe(false)
  })
})

describe("API keys", () => {
  test("names the environment variable if the key is missing, and sends nothing", async () => {
    let asked = 0
    const model = await models({
      fetch: async () => {
        asked++
        return new Response()
      },
    }).get(named("anthropic/claude-x"))
    await expect(ask(model)).rejects.toThrow(UsageError)
    await expect(ask(model)).rejects.toThrow(
      /Anthropic needs an API key.*ANTHROPIC_API_KEY in the environment/,
    )
    expect(asked).toBe(0)
  })

  test("finds a key that was added later", async () => {
    const environment: Record<string, string> = {}
    const model = await models({ environment }).get(named("openai/gpt-5"))
    await expect(model.language()).rejects.toThrow("OPENAI_API_KEY")
    environment.OPENAI_API_KEY = "k"
    expect(await model.language()).toBe(await model.language())
  })

  describe("fetch of a plugin", () => {
    async function answer(script: (asked: string[]) => Partial<ModelsDependencies>): Promise<string[]> {
      await using server = await startServer((response) => sendEvents(response, shortAnswer))
      const asked: string[] = []
      const config = { p: { options: { baseURL: `${server.origin}/v1` } } }
      const byPlugin: typeof fetch = (input, init) => {
        asked.push("plugin")
        return fetch(input, init)
      }
      const signedIn = async () => ({ apiKey: "token", fetch: byPlugin })
      await ask(await models({ config, signedIn, ...script(asked) }).get(named("p/m")))
      return asked
    }

    test("overrides the default fetch and is wrapped by aroundFetch", async () => {
      expect(await answer(() => ({}))).toEqual(["plugin"])
      const around = (asked: string[]) => (inner: typeof fetch) =>
        (async (input, init) => {
          asked.push("around")
          return inner(input, init)
        }) satisfies typeof fetch
      expect(await answer((asked) => ({ aroundFetch: around(asked) }))).toEqual(["around", "plugin"])
    })

    test("is not used for other providers", async () => {
      const events = shortAnswer
        .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
        .join("")
      const replay = async () => new Response(events, { headers: { "content-type": "text/event-stream" } })
      expect(await answer(() => ({ aroundFetch: () => replay }))).toEqual([])
    })
  })

  test.each([
    ["config before environment", { apiKey: "c" }, { OPENAI_API_KEY: "e" }, "c"],
    ["environment before file", {}, { OPENAI_API_KEY: "e" }, "e"],
    ["file last", {}, {}, "f"],
  ])("%s", async (_, options, environment, expected) => {
    const auth = { openai: { type: "api", key: "f" }, github: { type: "oauth", refresh: "r" } }
    await writeFile(join(directory, "auth.json"), JSON.stringify(auth), { mode: 0o600 })
    await using server = await startServer((response) => sendEvents(response, shortAnswer))
    const config = { openai: { options: { baseURL: server.origin, ...options } } }
    await ask(await models({ config, environment }).get(named("openai/gpt-5")))
    expect(server.received[0]?.headers.authorization).toBe(`Bearer ${expected}`)
  })

  test("rejects an auth file that is readable by others or malformed", async () => {
    const path = join(directory, "auth.json")
    const model = await models().get(named("openai/gpt-5"))
    await writeFile(path, "{}", { mode: 0o644 })
    await expect(model.language()).rejects.toThrow(`chmod 600 ${path}`)
    await rm(path)
    await writeFile(path, '{"openai": "k"}', { mode: 0o600 })
    await expect(model.language()).rejects.toThrow("is not a valid auth file")
  })
})

describe("requests of provider packages", () => {
  test("openai", async () => {
    await using server = await startServer((response) => sendEvents(response, shortAnswer))
    const environment = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${server.origin}/v1` }
    const events = await ask(await models({ environment }).get(named("openai/gpt-4.1")))
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop", tokens: { output: 3 } })
    const { url, body } = server.received[0] ?? {}
    expect(url).toBe("/v1/chat/completions")
    expect(body.tools).toMatchObject([{ type: "function", function: { name: "bash" } }])
    expect(body.messages).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user", content: "list" },
      { role: "assistant", content: "I will.", tool_calls: [{ id: "call_1" }, { id: "call_2" }] },
      { role: "tool", tool_call_id: "call_1", content: "a.txt" },
      { role: "tool", tool_call_id: "call_2", content: "Error: File not found" },
    ])
  })

  test("anthropic", async () => {
    const answer = [
      {
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          model: "c",
          content: [],
          usage: { input_tokens: 5, output_tokens: 1 },
        },
      },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "t1", name: "bash", input: {} },
      },
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json: '{"command":' },
      },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '"ls"}' } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
      { type: "message_stop" },
    ]
    await using server = await startServer((response) => sendEvents(response, answer))
    const environment = { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: `${server.origin}/v1` }
    const events = await ask(await models({ environment }).get(named("anthropic/claude-x")))
    expect(events).toContainEqual({
      type: "tool-call",
      callID: "t1",
      tool: "bash",
      input: '{"command":"ls"}',
    })
    expect(events.at(-1)).toMatchObject({ reason: "tool-calls", tokens: { input: 5, output: 9 } })
    const { url, headers, body } = server.received[0] ?? {}
    expect(url).toBe("/v1/messages")
    expect(headers?.["x-api-key"]).toBe("k")
    expect(body.tools).toMatchObject([{ name: "bash", input_schema: { type: "object" } }])
    expect(body.system).toMatchObject([{ text: "Be brief.", cache_control: { type: "ephemeral" } }])
    expect(body.messages).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: [{ type: "text" }, { type: "tool_use", id: "call_1" }, { id: "call_2" }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", content: "a.txt" },
          { type: "tool_result", tool_use_id: "call_2", content: "Error: File not found" },
        ],
      },
    ])
  })

  test("google, with its second variable", async () => {
    const answer = [
      {
        candidates: [
          {
            content: { role: "model", parts: [{ functionCall: { name: "bash", args: { command: "ls" } } }] },
            finishReason: "STOP",
          },
        ],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
      },
    ]
    await using server = await startServer((response) => sendEvents(response, answer))
    const config = { google: { options: { baseURL: `${server.origin}/v1beta` } } }
    const environment = { GEMINI_API_KEY: "k" }
    const events = await ask(await models({ config, environment }).get(named("google/gemini-2.5-flash")))
    expect(events).toContainEqual(
      expect.objectContaining({ type: "tool-call", tool: "bash", input: '{"command":"ls"}' }),
    )
    expect(events.at(-1)).toMatchObject({
      type: "finish",
      reason: "tool-calls",
      tokens: { input: 7, output: 2 },
    })
    const { url, headers, body } = server.received[0] ?? {}
    expect(url).toContain("/v1beta/models/gemini-2.5-flash:streamGenerateContent")
    expect(headers?.["x-goog-api-key"]).toBe("k")
    expect(JSON.stringify(body.tools)).toContain('"name":"bash"')
    expect(body.contents.at(-1).parts).toMatchObject([
      { functionResponse: { name: "bash", response: { content: "a.txt" } } },
      { functionResponse: { name: "read", response: { content: "Error: File not found" } } },
    ])
  })

  test("uses a known local server without config and key", async () => {
    await using server = await startServer((response) => sendEvents(response, shortAnswer))
    const redirect: typeof fetch = (input, init) =>
      fetch(String(input).replace("http://127.0.0.1:11434", server.origin), init)
    await ask(await models({ fetch: redirect }).get(named("ollama/qwen3")))
    expect(server.received[0]?.url).toBe("/v1/chat/completions")
    expect(server.received[0]?.headers.authorization).toBeUndefined()
  })
})

describe("other packages", () => {
  async function foreign(npm: string, source?: string) {
    if (source !== undefined) await writeFile(join(directory, "index.mjs"), source)
    const config = { mine: { npm, options: { region: "eu" } } }
    return (await models({ config }).get(named("mine/m"))).language()
  }

  test("are imported by name and get the settings", async () => {
    const source = `export const createMine = (settings) => ({
      languageModel: (id) => ({ specificationVersion: "v4", supportedUrls: {}, doStream: async () => { throw new Error(id + settings.region + settings.name) } })
    })`
    const language = await foreign(pathToFileURL(join(directory, "index.mjs")).href, source)
    await expect(language.doStream({ prompt: [] })).rejects.toThrow("meumine")
    expect(language).toMatchObject({ provider: "mine", modelId: "m" })
  })

  test("are rejected if missing, of another version or not a provider", async () => {
    await expect(foreign("@missing/package")).rejects.toThrow("npm install @missing/package")
    const old = join(directory, "index.mjs")
    await expect(
      foreign(
        pathToFileURL(old).href,
        `export const createX = () => ({ languageModel: () => ({ specificationVersion: "v2" }) })`,
      ),
    ).rejects.toThrow('uses version "v2"')
    await expect(foreign("node:path")).rejects.toThrow("not an AI SDK provider")
  })

  test("names the missing baseURL of a compatible server", async () => {
    const model = await models({ config: { mine: {} } }).get(named("mine/m"))
    await expect(model.language()).rejects.toThrow("provider.mine.options.baseURL")
  })
})

test("keeps at most 1,000 models", async () => {
  const config = { own: ProviderConfig.parse({ options: { baseURL: "http://127.0.0.1:1" } }) }
  const known = models({ config })
  const first = await known.get(named("own/first"))
  for (let count = 1; count < 1_000; count += 1) await known.get(named(`own/m${count}`))
  expect(await known.get(named("own/first"))).toBe(first)
  await known.get(named("own/one-too-many"))
  expect(await known.get(named("own/first"))).not.toBe(first)
})

test("prefers providers given as code to the config", async () => {
  const info = { ref: named("mine/x"), name: "x", toolCall: true, limit: {} }
  const extra = { mine: () => ({ info, language: () => Promise.reject(new Error("not used")) }) }
  expect((await models({ extra, config: { mine: {} } }).get(named("mine/x"))).info).toBe(info)
})
