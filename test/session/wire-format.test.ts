import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { startEngine } from "./engine.ts"

/** The messages of a request as plain data. */
function messagesOf(request: { body: { messages: unknown[] } } | undefined): Record<string, unknown>[] {
  return (request?.body.messages ?? []) as Record<string, unknown>[]
}

describe.each([
  { answers: "streams", whole: false },
  { answers: "answers whole", whole: true },
])("a server with $answers", ({ whole }) => {
  /** Starts the engine with a server of this wire format. */
  const start = (script: Script, options?: Parameters<typeof startEngine>[1]) =>
    startEngine(async (request, index) => {
      const reply = typeof script === "function" ? await script(request, index) : script[index]
      return { ...reply, whole }
    }, options)

  test("sends definitions with every request, arguments as text, and a bash result under its id", async () => {
    const command = { command: "ls", description: "List files in current directory" }
    await using engine = await start(
      [{ calls: [{ id: "call_bash_001", name: "bash", arguments: command }] }, { text: "There is a.txt." }],
      { files: { "a.txt": "x" } },
    )
    const session = await engine.tackle.sessions.create()
    const end = await session.prompt("List the files in the current directory").completed
    expect(end).toMatchObject({ status: "completed", exitCode: 0, text: "There is a.txt." })

    const [first, second] = engine.server.requests
    for (const request of [first, second]) {
      if (!request) throw new Error("there were not two requests")
      const { tools, stream } = request.body as {
        tools: { type: string; function: Record<string, unknown> }[]
        stream: boolean
      }
      expect(stream).toBe(true)
      const bash = tools.find((tool) => tool.function.name === "bash")
      expect(bash).toMatchObject({
        type: "function",
        function: { parameters: { type: "object", required: ["command"], additionalProperties: false } },
      })
    }
    expect(
      messagesOf(first)
        .map(({ role }) => role)
        .at(-1),
    ).toBe("user")
    const [call, result] = messagesOf(second).slice(-2)
    expect(call).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_bash_001",
          type: "function",
          function: { name: "bash", arguments: JSON.stringify(command) },
        },
      ],
    })
    expect(result).toMatchObject({ role: "tool", tool_call_id: "call_bash_001" })
    expect(result?.content).toMatch(/a\.txt\n[\s\S]*exit code 0/)
  })

  test("reads by absolute path", async () => {
    await using engine = await start(
      (_, index) =>
        index === 0
          ? { calls: [{ id: "call_read_001", name: "read", arguments: { filePath: path } }] }
          : { text: "It is a package." },
      { files: { "package.json": '{ "name": "x" }\n' } },
    )
    const path = join(engine.project.directory, "package.json")
    const session = await engine.tackle.sessions.create()
    await session.prompt("Read the package.json file").completed
    expect(messagesOf(engine.server.requests[1]).at(-1)?.content).toContain('    1→{ "name": "x" }')
  })

  test("joins a call that is streamed in arbitrary pieces", async () => {
    const command = { command: "git --version", description: "Check git version" }
    for (const pieceSize of [1, 7, 16]) {
      await using engine = await start(
        [{ calls: [{ id: "call_bash_002", name: "bash", arguments: command }], pieceSize }, { text: "Yes." }],
        { permission: { bash: "allow" } },
      )
      const session = await engine.tackle.sessions.create()
      await session.prompt("Check if git is installed").completed
      const [call] = messagesOf(engine.server.requests[1]).slice(-2)
      expect(call?.tool_calls).toEqual([
        {
          id: "call_bash_002",
          type: "function",
          function: { name: "bash", arguments: JSON.stringify(command) },
        },
      ])
    }
  })

  test("handles several turns: read, write, text", async () => {
    await using engine = await start(
      [
        { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] },
        { calls: [{ name: "write", arguments: { filePath: "a.txt", content: "new\n" } }] },
        { text: "Done." },
      ],
      { files: { "a.txt": "old\n" }, permission: { edit: "allow" } },
    )
    const session = await engine.tackle.sessions.create()
    const end = await session.prompt("Change it").completed
    expect(end.exitCode).toBe(0)
    expect(await engine.project.read("a.txt")).toBe("new\n")
    expect(
      messagesOf(engine.server.requests[2])
        .map(({ role }) => role)
        .slice(-5),
    ).toEqual(["user", "assistant", "tool", "assistant", "tool"])
  })

  test("returns several results in order, one message each", async () => {
    await using engine = await start(
      [
        {
          calls: [
            { id: "slow", name: "bash", arguments: { command: "sleep 0.3; echo first" } },
            { id: "quick", name: "read", arguments: { filePath: "a.txt" } },
          ],
        },
        { text: "Done." },
      ],
      { files: { "a.txt": "second\n" }, permission: { bash: "allow" } },
    )
    const session = await engine.tackle.sessions.create()
    await session.prompt("Both").completed
    const results = messagesOf(engine.server.requests[1]).slice(-2)
    expect(results.map((message) => message.tool_call_id)).toEqual(["slow", "quick"])
  })

  test("returns a failed call as `Error: …`", async () => {
    await using engine = await start([
      { calls: [{ id: "call_read_002", name: "read", arguments: { filePath: "nonexistent.txt" } }] },
      { text: "It is not there." },
    ])
    const session = await engine.tackle.sessions.create()
    await session.prompt("Read nonexistent.txt").completed
    const result = messagesOf(engine.server.requests[1]).at(-1)
    expect(result).toMatchObject({ role: "tool", tool_call_id: "call_read_002" })
    expect(result?.content).toMatch(/^Error: .*nonexistent\.txt/)
  })
})

test("fails for a body that is not a completion", async () => {
  const body = JSON.stringify({ hello: "world" })
  await using engine = await startEngine(() => ({ body, headers: { "content-type": "application/json" } }), {
    limits: { retry: { maxAttempts: 1 } },
  })
  const session = await engine.tackle.sessions.create()
  const end = await session.prompt("hi").completed
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
})
