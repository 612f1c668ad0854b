import { afterEach, expect, test } from "vitest"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"

let server: ModelServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function ask(
  script: Script,
  body: Record<string, unknown> = {},
  signal?: AbortSignal,
): Promise<Response> {
  server ??= await startModelServer({ script })
  return fetch(`${server.url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({
      model: "qwen3-max",
      messages: [{ role: "user", content: "hi" }],
      stream: true,
      ...body,
    }),
    ...(signal ? { signal } : {}),
  })
}

async function stream(reply: Reply, body: Record<string, unknown> = {}): Promise<string> {
  return (await ask([reply], body)).text()
}

/** The `choices[0]` of each event, `[DONE]` and the usage left out. */
function choices(text: string): { delta: Record<string, unknown>; finish_reason: string | null }[] {
  return events(text)
    .map((event) => JSON.parse(event))
    .filter((chunk) => chunk.choices.length > 0)
    .map(({ choices: [{ delta, finish_reason }] }) => ({ delta, finish_reason }))
}

function events(text: string): string[] {
  const all = text.split("\n\n").filter((event) => event !== "")
  expect(all.every((event) => event.startsWith("data: "))).toBe(true)
  return all.map((event) => event.slice("data: ".length)).filter((event) => event !== "[DONE]")
}

const gitVersion = {
  id: "call_bash_002",
  name: "bash",
  arguments: '{"command":"git --version","description":"Check git version"}',
}

test("streams a call as the documented chunks, byte by byte", async () => {
  const text = await stream({ calls: [gitVersion], pieceSize: 29 })
  const chunk = (delta: string, finish: string) =>
    `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1730303400,"model":"qwen3-max",` +
    `"choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`
  const head =
    '{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_bash_002",' +
    '"type":"function","function":{"name":"bash","arguments":""}}]}'
  const piece = (json: string) => `{"tool_calls":[{"index":0,"function":{"arguments":${json}}}]}`
  expect(text).toBe(
    chunk(head, "null") +
      chunk(piece('"{\\"command\\":\\"git --version\\",\\"d"'), "null") +
      chunk(piece('"escription\\":\\"Check git versio"'), "null") +
      chunk(piece('"n\\"}"'), "null") +
      chunk("{}", '"tool_calls"') +
      "data: [DONE]\n\n",
  )
})

test("streams reasoning, text and several calls in order with their indexes", async () => {
  const reply = {
    reasoning: "hm",
    text: "I look.",
    calls: [gitVersion, { name: "read", arguments: { filePath: "a" } }],
  }
  expect(choices(await stream(reply))).toEqual([
    { delta: { role: "assistant", content: "" }, finish_reason: null },
    { delta: { reasoning_content: "hm" }, finish_reason: null },
    { delta: { content: "I look." }, finish_reason: null },
    {
      delta: {
        tool_calls: [
          { index: 0, id: "call_bash_002", type: "function", function: { name: "bash", arguments: "" } },
        ],
      },
      finish_reason: null,
    },
    {
      delta: { tool_calls: [{ index: 0, function: { arguments: gitVersion.arguments } }] },
      finish_reason: null,
    },
    {
      delta: {
        tool_calls: [
          { index: 1, id: "call_0_1", type: "function", function: { name: "read", arguments: "" } },
        ],
      },
      finish_reason: null,
    },
    {
      delta: { tool_calls: [{ index: 1, function: { arguments: '{"filePath":"a"}' } }] },
      finish_reason: null,
    },
    { delta: {}, finish_reason: "tool_calls" },
  ])
})

test("splits a text into pieces without splitting a character", async () => {
  const text = "a😀b".repeat(50)
  const said = choices(await stream({ text, pieceSize: 2 })).map(({ delta }) => String(delta.content ?? ""))
  expect(said.join("")).toBe(text)
  expect(said.every((piece) => piece.isWellFormed())).toBe(true)
})

test("streams usage only on request, before the terminator", async () => {
  const reply = { text: "ok", usage: { input: 7, output: 3, cached: 2 } }
  expect(await stream(reply)).not.toContain("usage")
  await server?.close()
  server = undefined
  const last = events(await stream(reply, { stream_options: { include_usage: true } })).at(-1)
  expect(JSON.parse(last ?? "")).toMatchObject({
    choices: [],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 3,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 2 },
    },
  })
})

test("answers with one message without a stream", async () => {
  const response = await ask([{ calls: [gitVersion] }], { stream: false })
  expect(response.headers.get("content-type")).toBe("application/json")
  expect(await response.json()).toMatchObject({
    object: "chat.completion",
    model: "qwen3-max",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: "call_bash_002",
              type: "function",
              function: { name: "bash", arguments: gitVersion.arguments },
            },
          ],
        },
        finish_reason: "tool_calls",
      },
    ],
  })
})

test("accepts a function of the request and its number as a script", async () => {
  const script: Script = (request, index) => ({ text: `${index}: ${request.body.messages.length}` })
  await (await ask(script)).text()
  const second = await (await ask(script, { stream: false })).json()
  expect(second).toMatchObject({ choices: [{ message: { content: "1: 1" } }] })
})

test("reports the end of the script and a script that throws", async () => {
  const over = await ask([])
  expect(over.status).toBe(400)
  expect(await over.json()).toMatchObject({
    error: { message: "The script has 0 replies, but this is request 1." },
  })
  await server?.close()
  server = undefined
  const thrown = await ask(() => {
    throw new Error("what is this?")
  })
  expect(thrown.status).toBe(400)
  expect(await thrown.text()).toContain("what is this?")
})

test("records every request with its content and times", async () => {
  await (await ask([{ text: "ok" }], { messages: [{ role: "user", content: "ä" }] })).text()
  const [request] = server?.requests ?? []
  expect(request).toMatchObject({
    method: "POST",
    path: "/v1/chat/completions",
    body: { model: "qwen3-max", messages: [{ role: "user", content: "ä" }] },
  })
  expect(request?.bytes).toBe(Number(request?.headers["content-length"]))
  expect(request?.answerStart).toBeGreaterThanOrEqual(request?.time ?? Number.NaN)
  expect(request?.answerEnd).toBeGreaterThanOrEqual(request?.answerStart ?? Number.NaN)
})

test("lists the models without using the script, and rejects other paths", async () => {
  server = await startModelServer({ script: [{ text: "first" }], models: ["small", "large"] })
  const models = (await (await fetch(`${server.url}/models`)).json()) as { data: { id: string }[] }
  expect(models.data.map(({ id }) => id)).toEqual(["small", "large"])
  expect((await fetch(`${server.url}/embeddings`, { method: "POST" })).status).toBe(404)
  expect(await stream({})).toContain("first")
})

test("sends a status, headers and a raw body unchanged", async () => {
  const limited = await ask([
    { status: 429, headers: { "retry-after": "7" }, text: "Slow down." },
    { body: "{nothing", headers: { "content-type": "text/plain" } },
  ])
  expect(limited.status).toBe(429)
  expect(limited.headers.get("retry-after")).toBe("7")
  expect(await limited.json()).toMatchObject({ error: { message: "Slow down." } })
  const raw = await ask([])
  expect(raw.headers.get("content-type")).toBe("text/plain")
  expect(await raw.text()).toBe("{nothing")
})

test("sends the first piece before the last one with a delay between pieces", async () => {
  const response = await ask([{ text: "abc", pieceSize: 1, pieceDelayMs: 20 }])
  const reads: string[] = []
  for await (const chunk of response.body ?? []) reads.push(Buffer.from(chunk).toString())
  expect(reads.length).toBeGreaterThan(2)
  expect(choices(reads.join("")).map(({ delta }) => delta.content ?? "")).toEqual(["", "a", "b", "c", ""])
})

test("drops a delayed answer when the client disconnects", async () => {
  const client = new AbortController()
  const pending = ask([{ text: "late", delayMs: 60_000 }], {}, client.signal)
  setTimeout(() => client.abort(), 20)
  await expect(pending).rejects.toThrow()
  await server?.close()
  expect(server?.requests[0]?.answerStart).toBeUndefined()
})

test("hang: sends no answer", async () => {
  const pending = ask([{ fault: "hang" }])
  const outcome = pending.then(
    () => "answered",
    () => "refused",
  )
  await expect.poll(() => server?.requests.length).toBe(1)
  await server?.close()
  expect(await outcome).toBe("refused")
})

/** Reads a stream until it breaks or stops. */
async function partOf(response: Response, patience = 100): Promise<{ text: string; end: string }> {
  const reader = response.body?.getReader()
  let text = ""
  for (;;) {
    const silence = Promise.withResolvers<"silence">()
    const timer = setTimeout(() => silence.resolve("silence"), patience)
    const read = reader?.read().catch(() => "broken" as const)
    const next = await Promise.race([read, silence.promise])
    clearTimeout(timer)
    if (next === "silence" || next === "broken" || next === undefined) return { text, end: String(next) }
    if (next.done) return { text, end: "done" }
    text += Buffer.from(next.value).toString()
  }
}

test.each(["hang-mid", "cut", "half-event", "garbage", "no-finish"] as const)(
  "%s: breaks a stream in the middle",
  async (fault) => {
    const { text, end } = await partOf(await ask([{ text: "abcdef", pieceSize: 1, fault }]))
    expect(end).toBe(
      { "hang-mid": "silence", cut: "broken", "half-event": "done", garbage: "done", "no-finish": "done" }[
        fault
      ],
    )
    const said = [...text.matchAll(/"content":"(.)"/g)].map(([, letter]) => letter).join("")
    expect(said).toBe(
      { "hang-mid": "abcd", cut: "abcd", "half-event": "abcd", garbage: "abcdef", "no-finish": "abcdef" }[
        fault
      ],
    )
    expect(text.includes('"finish_reason":"stop"')).toBe(fault === "garbage")
    expect(text.endsWith("\n\n")).toBe(fault !== "half-event")
    if (fault === "garbage") expect(() => choices(text)).toThrow(SyntaxError)
  },
)

test("applies the same defects to an answer in one piece", async () => {
  const cut = await ask(
    [
      { text: "abcdef", fault: "cut" },
      { text: "abcdef", fault: "garbage" },
    ],
    { stream: false },
  )
  await expect(cut.text()).rejects.toThrow()
  const garbage = await ask([], { stream: false })
  await expect(garbage.json()).rejects.toThrow(SyntaxError)
})

test("reset: closes the connection before an answer", async () => {
  await expect(ask([{ fault: "reset" }])).rejects.toMatchObject({ cause: { code: "ECONNRESET" } })
})

test("html: sends a page with status 200 or the status of the reply", async () => {
  const page = await ask([{ fault: "html" }, { fault: "html", status: 502 }])
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html"])
  expect(await page.text()).toMatch(/^<html>/)
  expect((await ask([])).status).toBe(502)
})
