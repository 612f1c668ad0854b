import { expect, test } from "vitest"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool } from "../session/run.ts"

test.each([
  ["by the rules", { permission: { bash: "deny" as const } }, /used only with bash/],
  ["by the configuration", { disabledTools: ["bash"] }, /used only with bash/],
  ["itself", { permission: { job: "deny" as const } }, /the permission rules deny it/],
])("does not offer job if bash is denied %s", async (_, options, reason) => {
  await using engine = await startEngine([], options)
  const job = (await engine.tackle.tools()).find(({ id }) => id === "job")
  expect(job).toMatchObject({ offered: false, reason: expect.stringMatching(reason) })
  const { state } = await engine.tackle.callTool({ tool: "job", input: '{"action":"list"}' })
  expect(state).toMatchObject({ status: "error", metadata: { kind: "refused" } })
})

test("offers job if bash may run a command", async () => {
  await using engine = await startEngine([], { permission: { bash: { "*": "deny", "git *": "allow" } } })
  expect((await engine.tackle.tools()).find(({ id }) => id === "job")).toMatchObject({ offered: true })
})

test("makes subagents unavailable only to calls without a session", async () => {
  await using engine = await startEngine([{ text: "Done." }])
  const input = JSON.stringify({ description: "Look", prompt: "Look around", subagent_type: "explore" })
  const { state } = await engine.tackle.callTool({ tool: "task", input })
  expect(state).toMatchObject({
    status: "error",
    error: expect.stringMatching(/task tool is unavailable: .*only in a session/),
  })
  const session = await engine.tackle.sessions.create()
  await session.prompt("go").completed
  expect(engine.server.requests).toHaveLength(1)
  expect(engine.server.requests[0]?.body.tools?.map((tool) => tool.function.name)).toContain("task")
})

test.each(["toString", "constructor", "valueOf", "__proto__"])(
  "offers and runs a tool with the id %s",
  async (id) => {
    await using engine = await startEngine([{ calls: [{ name: id, arguments: {} }] }, { text: "Done." }], {
      tools: [tool(id, async () => ({ title: "", output: "ran" }))],
      permission: { [id]: "allow" },
    })
    expect((await engine.tackle.tools()).find((each) => each.id === id)).toMatchObject({ offered: true })
    const { session } = await run(engine)
    expect(await resultsOf(session)).toEqual(["ran"])
  },
)

test("answers a prompt without a tool whose parameters cannot be sent", async () => {
  const cyclic: Record<string, unknown> = { type: "object" }
  cyclic.properties = { self: cyclic }
  const broken = tool("broken", async () => ({ title: "", output: "" }), { jsonSchema: cyclic })
  await using engine = await startEngine([{ text: "Done." }], { tools: [broken] })
  expect((await run(engine)).end).toMatchObject({ status: "completed", text: "Done." })
  expect(engine.tackle.problems()).toEqual([
    { file: "library", message: expect.stringContaining('the tool "broken" cannot be offered') },
  ])
})
