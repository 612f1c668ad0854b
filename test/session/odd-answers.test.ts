import { describe, expect, test } from "vitest"
import type { ToolPart } from "../../src/schema/part.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { type Engine, startEngine } from "./engine.ts"

const files = { "a.txt": "first\n", "b.txt": "second\n" }

async function run(engine: Engine) {
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("go")
  let error = ""
  for await (const event of started) if (event.type === "session.error") error = event.error.message
  const end = await started.completed
  const parts = (await session.messages()).flatMap((entry) => entry.parts)
  return { end, error, parts, tools: parts.filter((part): part is ToolPart => part.type === "tool") }
}

const read = (filePath: string, id?: string) => ({ name: "read", arguments: { filePath }, ...(id && { id }) })

/** Events of a chat completion, as text. Every event except the last ends with a blank line. */
function body(...chunks: (object | string)[]): string {
  const events = chunks.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}`)
  return events.join("\n\n")
}

const streamed = { headers: { "content-type": "text/event-stream" } }
const choice = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
})
const opening = (index: number, id: string, name: string, args: string) =>
  choice({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] })

describe("an odd answer of the model", () => {
  test.each([false, true])(
    "with a call without a name becomes an invalid call (one body: %s)",
    async (whole) => {
      await using engine = await startEngine(
        [
          { calls: [{ name: "", arguments: { filePath: "a.txt" } }, read("b.txt")], whole, pieceSize: 4 },
          { text: "Done." },
        ],
        { files },
      )
      const { end, tools } = await run(engine)
      expect(end.status).toBe("completed")
      expect(tools).toHaveLength(2)
      expect(tools.find(({ tool }) => tool === "invalid")?.state).toMatchObject({
        status: "error",
        error: expect.stringMatching(/does not specify a tool[\s\S]*Available tools: [\s\S]*read/),
      })
      expect(tools.find(({ tool }) => tool === "read")?.state.status).toBe("completed")
      expect(engine.server.requests).toHaveLength(2)
    },
  )

  test("with a blank name in later pieces of a call keeps the call", async () => {
    const answer = body(
      opening(0, "c1", "read", ""),
      opening(0, "c1", "", '{"filePath":'),
      opening(0, "", "", ' "a.txt"}'),
      choice({}, "tool_calls"),
      "[DONE]",
    )
    await using engine = await startEngine([{ body: `${answer}\n\n`, ...streamed }, { text: "Done." }], {
      files,
    })
    const { tools } = await run(engine)
    expect(tools.map(({ tool, state }) => [tool, state.status])).toEqual([["read", "completed"]])
  })

  test.each([100, 5_000, 50_000])("with arguments nested %i deep fails the call alone", async (depth) => {
    const nested = `{"filePath": ${"[".repeat(depth)}${"]".repeat(depth)}}`
    const objects = `{"filePath": ${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`
    await using engine = await startEngine(
      [
        { calls: [{ name: "read", arguments: nested }, { name: "read", arguments: objects }, read("b.txt")] },
        { text: "Done." },
      ],
      { files },
    )
    const { end, tools } = await run(engine)
    expect(end.status).toBe("completed")
    expect(tools.map(({ state }) => state.status)).toEqual(["error", "error", "completed"])
    const error = tools[0]?.state.status === "error" ? tools[0].state.error : ""
    expect(error.length).toBeLessThan(2_000)
  })

  test.each(["hermes", "pythonic", "xml"] as const)(
    "with deep arguments in text (%s) fails the call alone",
    async (toolDialect) => {
      const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`
      const text = {
        hermes: `<tool_call>{"name": "read", "arguments": {"filePath": ${deep}}}</tool_call>`,
        pythonic: `[read(filePath=${deep})]`,
        xml: `<function=read><parameter=offset>${deep}</parameter></function>`,
      }[toolDialect]
      const models = { m: { toolCalling: "synthetic" as const, toolDialect } }
      const server = await startModelServer({
        script: (_, index) => ({ text: index < 3 ? text : "Done." }),
      })
      const options = { baseURL: server.url, apiKey: "k" }
      await using engine = await startEngine([], { files, providers: { test: { options, models } } })
      const { end, tools } = await run(engine)
      await server.close()
      expect(end.status).toBe("completed")
      expect(tools.map(({ state }) => state.status)).not.toContain("completed")
    },
  )

  test("with an error in the middle is requested again", async () => {
    const broken = body(choice({ content: "Hel" }), {
      error: { message: "Internal error", type: "server_error" },
    })
    const coded = body(choice({ content: "Hel" }), { error: { message: "Bad gateway", code: 502 } })
    for (const answer of [broken, coded]) {
      await using engine = await startEngine([{ body: `${answer}\n\n`, ...streamed }, { text: "Done." }], {
        files,
      })
      const { end, parts } = await run(engine)
      expect(end.status).toBe("completed")
      expect(parts.flatMap((part) => (part.type === "text" ? [part.text] : []))).toContain("Done.")
      expect(parts.some(({ type }) => type === "retry")).toBe(true)
    }
  })

  test("with a refusal in the middle is not requested again", async () => {
    const answer = body(choice({ content: "Hel" }), {
      error: { message: "Not allowed", type: "invalid_request_error" },
    })
    await using engine = await startEngine([{ body: `${answer}\n\n`, ...streamed }, { text: "Done." }], {
      files,
    })
    const { end } = await run(engine)
    expect(end.status).toBe("failed")
    expect(engine.server.requests).toHaveLength(1)
  })

  test("without a blank line after the last event is complete", async () => {
    const answer = body(choice({ content: "Done." }), choice({}, "stop"))
    for (const ending of ["", "\n", "\r\n"]) {
      await using engine = await startEngine([{ body: `${answer}${ending}`, ...streamed }], { files })
      const { end, parts } = await run(engine)
      expect(end.status).toBe("completed")
      expect(parts).toContainEqual(expect.objectContaining({ type: "text", text: "Done." }))
    }
  })

  test("gives calls with the same id different ids", async () => {
    await using engine = await startEngine(
      [
        { calls: [read("a.txt", "same"), read("b.txt", "same")] },
        { calls: [read("b.txt", "same")] },
        { text: "Done." },
      ],
      { files },
    )
    const { tools } = await run(engine)
    expect(tools.map(({ state }) => state.status)).toEqual(["completed", "completed", "completed"])
    expect(new Set(tools.map(({ callID }) => callID)).size).toBe(3)
    const sent = engine.server.requests.at(-1)?.body.messages ?? []
    const asked = sent.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
    expect(asked).toHaveLength(3)
    expect(new Set(asked).size).toBe(3)
    expect(sent.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(asked)
  })

  test("with too many calls fails without running any", async () => {
    const calls = Array.from({ length: 200 }, () => read("a.txt"))
    await using engine = await startEngine([{ calls }, { text: "Done." }], { files })
    const { end, error, tools } = await run(engine)
    expect(end.status).toBe("failed")
    expect(error).toContain("the answer exceeds the limit of 128 calls")
    expect(tools.some(({ state }) => state.status === "completed")).toBe(false)
    expect(engine.server.requests).toHaveLength(1)
  })
})

describe("one odd field", () => {
  const text = choice({ content: "Read." })
  const stop = choice({}, "stop")
  const call = (fields: object) =>
    choice({ tool_calls: [{ index: 0, id: "c1", type: "function", ...fields }] })
  const whole = { function: { name: "read", arguments: '{"filePath":"a.txt"}' } }
  const done = choice({}, "tool_calls")

  test.each<[string, unknown[]]>([
    [
      "arguments as an object",
      [call({ function: { name: "read", arguments: { filePath: "a.txt" } } }), done],
    ],
    ["index as text", [choice({ tool_calls: [{ ...whole, index: "0", id: "c1" }] }), done]],
    ["a numeric id", [call({ ...whole, id: 7 }), done]],
    ["no id", [choice({ tool_calls: [{ index: 0, ...whole }] }), done]],
    ["one call instead of a list", [choice({ tool_calls: { index: 0, id: "c1", ...whole } }), done]],
    ["a call without function", [call({ name: "read", arguments: { filePath: "a.txt" } }), done]],
    ["an odd signature", [call({ ...whole, extra_content: "x" }), done]],
    ["choices null", [{ choices: null }, call(whole), done]],
    ["choices missing", [{ object: "chat.completion.chunk" }, call(whole), done]],
    ["delta null", [{ choices: [{ index: 0, delta: null }] }, call(whole), done]],
    ["delta text", [{ choices: [{ index: 0, delta: "x" }] }, call(whole), done]],
    ["error null", [{ error: null, ...call(whole) }, done]],
    ["tool_calls null", [choice({ tool_calls: null }), call(whole), done]],
    ["an odd role", [choice({ role: "model", content: 5 }), call(whole), done]],
    [
      "odd reasoning",
      [choice({ reasoning: [{ text: "Hm." }], reasoning_content: false }), call(whole), done],
    ],
    ["created as text", [{ created: "now", id: 1, model: null, ...call(whole) }, done]],
    ["escaped text", [choice({ content: "\u4e2d\u00e9", role: "model" }), call(whole), done]],
    ["usage as a list", [call(whole), { ...done, usage: [] }]],
    ["usage as text", [call(whole), { ...done, usage: "many" }]],
  ])("does not lose the answer: %s", async (_, chunks) => {
    await using engine = await startEngine(
      [
        { body: `${body(...(chunks as object[]), "[DONE]")}\n\n`, ...streamed },
        { body: `${body(text, stop, "[DONE]")}\n\n`, ...streamed },
      ],
      { files },
    )
    const { end, tools } = await run(engine)
    expect(end).toMatchObject({ status: "completed", text: "Read." })
    expect(tools.map(({ tool, state }) => [tool, state.status])).toEqual([["read", "completed"]])
    expect(engine.server.requests).toHaveLength(2)
  })

  test.each([
    [{ prompt_tokens: "30", completion_tokens: "12", prompt_tokens_details: [] }, 30, 12],
    [{ prompt_tokens: 30, completion_tokens: { text: 1 }, total_tokens: "x" }, 30, 0],
  ])("in usage keeps the other counts: %j", async (usage, input, output) => {
    await using engine = await startEngine([
      { body: `${body(text, { ...stop, usage }, "[DONE]")}\n\n`, ...streamed },
    ])
    expect((await run(engine)).end).toMatchObject({ status: "completed", usage: { input, output } })
  })

  test.each([
    ["a list of parts", ["Re", { type: "text", text: "ad" }, { type: "output_text", text: "." }]],
    ["an object", { text: "Read." }],
  ])("in content is read: %s", async (_, content) => {
    for (const whole of [false, true]) {
      const answer = {
        choices: [{ index: 0, message: { role: "bot", content }, finish_reason: "stop" }],
        usage: "",
      }
      const reply = whole
        ? { body: JSON.stringify(answer), headers: { "content-type": "application/json" } }
        : { body: `${body(choice({ content }), stop, "[DONE]")}\n\n`, ...streamed }
      await using engine = await startEngine([reply])
      expect((await run(engine)).end).toMatchObject({ status: "completed", text: "Read." })
    }
  })

  test("does not change the characters of the text", async () => {
    const odd =
      '{"choices":[{"index":0,"delta":{"role":"bot","content":"\\u4e2d é\\u00e9 👩"},"finish_reason":null}]}'
    await using engine = await startEngine([{ body: `${body(odd, stop, "[DONE]")}\n\n`, ...streamed }])
    expect((await run(engine)).end.text).toBe("中 éé 👩")
  })
})
