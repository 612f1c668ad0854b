import { chmod } from "node:fs/promises"
import { describe, expect, onTestFinished, test } from "vitest"
import * as z from "zod"
import type { Script } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { define } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"
import { run, toolParts } from "../session/run.ts"

const echo = define("echo_text", {
  description: "Gives back its arguments.",
  parameters: z.object({ text: z.string(), times: z.coerce.number().default(1) }),
  execute: async (args) => ({ title: "echo", output: JSON.stringify(args) }),
})

/** Makes one call as written. */
async function call(name: string, args: Record<string, unknown> | string, finish?: string) {
  await using engine = await startEngine(
    [{ calls: [{ name, arguments: args }], ...(finish === undefined ? {} : { finish }) }, { text: "Done." }],
    { tools: [echo], permission: { "*": "allow" } },
  )
  const { session, end } = await run(engine)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
  const [part] = await toolParts(session)
  if (!part) throw new Error("there is no tool part")
  return part
}

test("passes parsed arguments with defaults and coercions", async () => {
  const { state } = await call("echo_text", { text: "a", times: "3", unknown: 1 })
  expect(state).toMatchObject({ status: "completed", output: '{"text":"a","times":3}' })
  // The recorded input is what the model wrote.
  expect(state.input).toEqual({ text: "a", times: "3", unknown: 1 })
})

test.each([
  ["within a JSON string", JSON.stringify('{"text":"a"}')],
  ["in a code fence", '```json\n{"text":"a"}\n```'],
  ["with text after them", '{"text":"a"} Let me know.'],
  ["with a comma too many", '{"text":"a",}'],
  ["after an empty object", '{}{"text":"a"}'],
])("reads arguments %s, and reports the repair", async (_, raw) => {
  const { state } = await call("echo_text", raw)
  expect(state).toMatchObject({
    status: "completed",
    input: { text: "a" },
    metadata: { repaired: '{"text":"a"}' },
  })
})

test.each(["Echo_Text", "echo-text", "echoText", "functions.echo_text", "echo_txt"])(
  "%s is read as the only similar name, and the result says so",
  async (name) => {
    const part = await call(name, { text: "a" })
    expect(part.tool).toBe(name)
    expect(part.state).toMatchObject({
      status: "completed",
      metadata: { repaired: `the name "${name}" was read as "echo_text"` },
    })
  },
)

test.each([
  ["cut off", '{"text":"a', /not valid JSON/],
  ["an array", '["a"]', /JSON object/],
  ["a number", "7", /JSON object/],
])("does not guess arguments that are %s", async (_, raw, message) => {
  const { state } = await call("echo_text", raw)
  expect(state).toMatchObject({ status: "error", input: {}, raw, metadata: { kind: "malformed" } })
  expect(state.status === "error" && state.error).toMatch(message)
})

test("reports wrong types by location, with expected and actual type", async () => {
  const { state } = await call("echo_text", { text: 5, times: "many" })
  expect(state).toMatchObject({
    status: "error",
    error:
      'The echo_text tool was called with invalid arguments: text: expected string, got 5; times: expected number, got "many".\n' +
      "Please rewrite the input so it satisfies the expected schema.",
    metadata: { kind: "invalid-arguments" },
  })
})

test("runs a complete call of an answer that hit its limit", async () => {
  expect((await call("echo_text", { text: "a" }, "length")).state.status).toBe("completed")
  const cut = await call("echo_text", '{"text":"a', "length")
  expect(cut.state.status === "error" && cut.state.error).toMatch(/output limit/)
})

test("keeps the name of an unknown tool and lists the available ones", async () => {
  const part = await call("teleport", {})
  expect(part).toMatchObject({
    tool: "teleport",
    state: { status: "error", metadata: { kind: "unknown-tool" } },
  })
  expect(part.state.status === "error" && part.state.error).toMatch(/teleport[\s\S]*echo_text/)
})

test("sends the next request after a name and id that servers would reject", async () => {
  await using engine = await startEngine([
    { calls: [{ id: "call 1/ü", name: "drop table; --", arguments: {} }] },
    { text: "Done." },
  ])
  expect((await run(engine)).end.text).toBe("Done.")
  const sent = engine.server.requests[1]?.body.messages.at(-2)?.tool_calls?.[0]
  expect(sent?.function.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
})

test("separates calls with the same id", async () => {
  await using engine = await startEngine(
    [
      {
        calls: ["one", "two", "three"].map((text) => ({
          id: "call_0",
          name: "echo_text",
          arguments: { text },
        })),
        pieceSize: 4,
      },
      { text: "Done." },
    ],
    { tools: [echo], permission: { "*": "allow" } },
  )
  const { session, end } = await run(engine)
  expect(end.exitCode).toBe(0)
  const parts = await toolParts(session)
  expect(parts.map(({ state }) => [state.status, state.input.text])).toEqual([
    ["completed", "one"],
    ["completed", "two"],
    ["completed", "three"],
  ])
  const ids = parts.map(({ callID }) => callID)
  expect(new Set(ids).size).toBe(3)
  const results = engine.server.requests[1]?.body.messages.slice(-3).map(({ tool_call_id }) => tool_call_id)
  expect(results).toEqual(ids)
})

describe("malformed arguments in the history", () => {
  const raw = '{"text":"a\nb'
  const script = (accepts: (args: string) => boolean) =>
    ((request, index) => {
      if (index === 0) return { calls: [{ name: "echo_text", arguments: raw }] }
      const sent = argumentsIn(request)
      return sent.every(accepts) ? { text: "Done." } : { status: 400, text: "invalid tool call arguments" }
    }) satisfies Script

  function argumentsIn({ body }: { body: { messages: readonly unknown[] } }): string[] {
    const messages = body.messages as { tool_calls?: { function: { arguments: string } }[] }[]
    return messages.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => call.function.arguments))
  }

  test("are sent as the model wrote them", async () => {
    await using engine = await startEngine(
      script(() => true),
      { tools: [echo], permission: "allow" },
    )
    const { session } = await run(engine)
    await run(engine, { session, text: "again" })
    expect(engine.server.requests.slice(1).map(argumentsIn)).toEqual([[raw], [raw]])
  })

  test("are sent as an object to a server that refuses the text, in later requests too", async () => {
    const isObject = (text: string) => text.startsWith("{") && text.endsWith("}")
    await using engine = await startEngine(script(isObject), { tools: [echo], permission: "allow" })
    const { session, end } = await run(engine)
    expect(end).toMatchObject({ status: "completed", text: "Done." })
    await run(engine, { session, text: "again" })
    const object = JSON.stringify({ malformed: raw })
    expect(engine.server.requests.slice(1).map(argumentsIn)).toEqual([[raw], [object], [object]])
  })
})

describe("arguments in the wrong form", () => {
  const schema = {
    type: "object",
    properties: {
      filePath: { type: "string" },
      limit: { type: "integer" },
      tags: { type: "array", items: { type: "string" } },
      range: { type: "object", properties: { start: { type: "number" } }, required: ["start"] },
      all: { type: "boolean" },
      note: { type: "string", minLength: 1 },
    },
    required: ["filePath"],
  }
  const given = {
    file_path: "a.txt",
    limit: "5",
    tags: "x",
    range: '{"start":"2"}',
    all: "True",
    note: "",
  }
  const wanted = { filePath: "a.txt", limit: 5, tags: ["x"], range: { start: 2 }, all: true }

  const program = `#!${process.execPath}
if (process.argv[2] === "--describe")
  console.log(${JSON.stringify(JSON.stringify({ name: "probe", description: "d", parameters: schema }))})
else
  require("node:readline").createInterface({ input: process.stdin }).once("line", (line) => {
    const { id, arguments: args } = JSON.parse(line)
    console.log(JSON.stringify({ type: "result", id, output: JSON.stringify(args) }))
    process.exit(0)
  })
`
  const server = `
import { createInterface } from "node:readline"
const tools = [{ name: "probe", inputSchema: ${JSON.stringify(schema)} }]
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  const results = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }),
    "tools/list": () => ({ tools }),
    "tools/call": () => ({ content: [{ type: "text", text: JSON.stringify(params.arguments) }] }),
  }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method]() }))
})
`
  const custom = `
import { z } from "zod"
export default {
  description: "d",
  args: {
    filePath: z.string(),
    limit: z.int().optional(),
    tags: z.array(z.string()).optional(),
    range: z.object({ start: z.number() }).optional(),
    all: z.boolean().optional(),
    note: z.string().min(1).optional(),
  },
  execute: async (args) => JSON.stringify(args),
}
`
  const plain = `
export default {
  description: "d",
  args: ${JSON.stringify(schema.properties)},
  execute: async (args) => JSON.stringify(args),
}
`

  test.each([
    ["a custom tool", "custom", wanted],
    // All fields of such a tool are required.
    ["a custom tool with JSON Schemas", "plain", { ...wanted, note: "" }],
    ["a tool in another language", "probe", wanted],
    ["a tool of an MCP server", "s_probe", wanted],
  ])("of %s are corrected before the request for permission", async (_, name, corrected) => {
    const project = await temporaryProject({
      "custom.ts": custom,
      "plain.ts": plain,
      probe: program,
      "server.mjs": server,
    })
    onTestFinished(() => project.remove())
    await chmod(project.path("probe"), 0o755)
    await using engine = await startEngine([{ calls: [{ name, arguments: given }] }, { text: "Done." }], {
      toolFiles: ["custom.ts", "plain.ts", "probe"].map((file) => project.path(file)),
      mcp: { s: { type: "local", command: [process.execPath, project.path("server.mjs")] } },
      permission: { "*": "ask" },
      environment: { PATH: process.env.PATH },
    })
    const asked: unknown[] = []
    engine.tackle.on("permission.asked", (request) => {
      asked.push(...request.patterns.map((pattern) => JSON.parse(pattern)))
      void request.reply("once")
    })
    const { session } = await run(engine)
    const [part] = await toolParts(session)
    expect(part?.state).toMatchObject({
      status: "completed",
      input: corrected,
      metadata: { repaired: expect.stringContaining('"file_path" was read as "filePath"') },
    })
    expect(part?.state.status === "completed" && JSON.parse(part.state.output)).toEqual(corrected)
    expect(asked).toEqual([corrected])
  })

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["read", { path: "a.txt", offset: "0", limit: null }, { filePath: "a.txt", offset: 0 }],
    ["read", { file_path: "a.txt", limit: "" }, { filePath: "a.txt" }],
    ["bash", { cmd: "true", timeout: "", workdir: "", stdin: "false" }, { command: "true", stdin: false }],
    ["list", { path: "", ignore: "*.log" }, { ignore: ["*.log"] }],
    ["grep", { pattern: "a", path: null, include: "" }, { pattern: "a" }],
    [
      "todowrite",
      { todos: '[{"content":"x","status":"pending","priority":""}]' },
      { todos: [{ content: "x", status: "pending" }] },
    ],
    [
      "todowrite",
      { todos: { content: "x", status: "pending" } },
      { todos: [{ content: "x", status: "pending" }] },
    ],
  ])("of the built-in tool %s: %j", async (name, args, corrected) => {
    await using engine = await startEngine([{ calls: [{ name, arguments: args }] }, { text: "Done." }], {
      files: { "a.txt": "a\n" },
      permission: { "*": "allow" },
    })
    const { session } = await run(engine)
    expect((await toolParts(session))[0]?.state).toMatchObject({ status: "completed", input: corrected })
  })

  test("reach plugins that check them in their corrected form", async () => {
    const blocking = `
export const Blocking = async () => ({
  "tool.execute.before": async (input, output) => {
    if (output.args.filePath?.includes("secret")) throw new Error("not this file")
  },
})
`
    const project = await temporaryProject({ "blocking.js": blocking })
    onTestFinished(() => project.remove())
    await using engine = await startEngine(
      [{ calls: [{ name: "read", arguments: { path: "secret.txt" } }] }, { text: "Done." }],
      {
        files: { "secret.txt": "s\n" },
        permission: { "*": "allow" },
        plugins: [{ name: "blocking", path: project.path("blocking.js") }],
      },
    )
    const { session } = await run(engine)
    expect((await toolParts(session))[0]?.state).toMatchObject({
      status: "error",
      error: expect.stringContaining("not this file"),
    })
  })

  test.each<[string, Record<string, unknown>, string]>([
    [
      "bash",
      { script: "ls", cwd: "/" },
      'command: expected string, got nothing; unknown key "script" (known keys: ',
    ],
    [
      "edit",
      { path: "a", old_text: "x", newText: "y" },
      'unknown key "old_text" (did you mean "oldString"?)',
    ],
    ["read", { file: 5 }, 'unknown key "file" (did you mean "filePath"?)'],
  ])("name the unknown keys of %s: %j", async (name, args, error) => {
    await using engine = await startEngine([{ calls: [{ name, arguments: args }] }, { text: "Done." }], {
      permission: { "*": "allow" },
    })
    const { session } = await run(engine)
    expect((await toolParts(session))[0]?.state).toMatchObject({
      status: "error",
      error: expect.stringContaining(error),
    })
  })
})
