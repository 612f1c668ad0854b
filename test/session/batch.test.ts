import { existsSync } from "node:fs"
import { expect, test } from "vitest"
import { startEngine } from "./engine.ts"
import { resultsOf, run, tool, toolParts } from "./run.ts"

type Inner = [tool: string, parameters: Record<string, unknown>]

const batch = (...calls: Inner[]) => ({
  calls: [
    {
      name: "batch",
      arguments: { calls: calls.map(([name, parameters]) => ({ tool: name, parameters })) },
    },
  ],
})
const on = { experimental: { batch_tool: true } }
const files = { "a.txt": "alpha\n", "b.txt": "beta\n" }

test("offers batch only when it is switched on", async () => {
  await using engine = await startEngine([batch(["read", { filePath: "a.txt" }]), { text: "Done." }], {
    files,
  })
  const { session } = await run(engine)
  expect((await resultsOf(session))[0]).toMatch(/this tool does not exist/)
})

test("stores each call as a part, runs the others after a failure, and returns one result", async () => {
  await using engine = await startEngine(
    [
      batch(["read", { filePath: "a.txt" }], ["read", { filePath: "none" }], ["nosuch", {}]),
      { text: "Done." },
    ],
    { files, ...on },
  )
  const { session } = await run(engine)
  const [outer, ...inner] = await toolParts(session)
  expect(inner.map(({ tool, state, parentCallID }) => [tool, state.status, parentCallID])).toEqual([
    ["read", "completed", outer?.callID],
    ["read", "error", outer?.callID],
    ["nosuch", "error", outer?.callID],
  ])
  const [result] = await resultsOf(session)
  expect(result).toMatch(/^2 of 3 calls failed\.\n<call number="1" tool="read">\n<file [\s\S]*1→alpha/)
  expect(result).toMatch(
    /<call number="2" tool="read">\nError: [\s\S]*<call number="3" tool="nosuch">\nError: /,
  )
  const sent = engine.server.requests[1]?.body.messages.slice(-2)
  expect(sent?.map(({ role, tool_calls }) => [role, tool_calls?.length])).toEqual([
    ["assistant", 1],
    ["tool", undefined],
  ])
})

test("requests permission for each call", async () => {
  await using engine = await startEngine(
    [
      batch(["write", { filePath: "x", content: "1" }], ["write", { filePath: "y", content: "2" }]),
      { text: "Done." },
    ],
    on,
  )
  engine.tackle.on("permission.asked", (request) =>
    request.reply(request.patterns.includes("x") ? "once" : "reject"),
  )
  const { end } = await run(engine)
  expect([existsSync(engine.project.path("x")), existsSync(engine.project.path("y"))]).toEqual([true, false])
  expect(end).toMatchObject({ exitCode: 3, refused: [{ tool: "write", patterns: ["y"] }] })
})

test("keeps the order of conflicting calls inside a batch, and runs a batch alone", async () => {
  const log: string[] = []
  const step = tool("step", async ({ name }) => {
    log.push(`${name}+`)
    await new Promise((resolve) => setTimeout(resolve, 30))
    log.push(`${name}-`)
    return { title: "step", output: "" }
  })
  const script = [
    {
      calls: [
        ...batch(["step", { name: "a" }], ["step", { name: "b" }]).calls,
        { name: "step", arguments: { name: "c" } },
      ],
    },
    { text: "Done." },
  ]
  await using engine = await startEngine(script, { ...on, tools: [step], permission: "allow" })
  await run(engine)
  expect(log.slice(0, 2)).toEqual(["a+", "b+"])
  expect(log.slice(4)).toEqual(["c+", "c-"])
})

test("counts a read in the same batch before an edit", async () => {
  const edit = { filePath: "a.txt", oldString: "alpha", newString: "gamma" }
  await using engine = await startEngine(
    [batch(["read", { filePath: "a.txt" }], ["edit", edit]), { text: "Done." }],
    { files, ...on, permission: "allow" },
  )
  await run(engine)
  expect(await engine.project.read("a.txt")).toBe("gamma\n")
})

test("refuses nested batches and more than 25 calls", async () => {
  const many = Array.from({ length: 26 }, (): Inner => ["read", { filePath: "a.txt" }])
  await using engine = await startEngine(
    [batch(["batch", { calls: [{ tool: "read", parameters: { filePath: "a.txt" } }] }]), batch(...many), {}],
    { files, ...on },
  )
  const { session } = await run(engine)
  const [nested, inner, tooMany, ...rest] = await resultsOf(session)
  expect(nested).toMatch(/^1 call failed/)
  expect(inner).toMatch(/^Error: .*"batch"/)
  expect(tooMany).toMatch(/^Error: .*at most 25 calls/)
  expect(rest).toEqual([])
})

test("ends every call of a batch on an interrupt", async () => {
  await using engine = await startEngine(
    [batch(["bash", { command: "sleep 60" }], ["bash", { command: "sleep 61" }]), { text: "Done." }],
    { ...on, permission: "allow" },
  )
  const controller = new AbortController()
  let began = 0
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type !== "tool" || part.tool !== "bash" || part.state.status !== "running") return
    if (part.state.metadata?.process !== undefined && ++began === 2) controller.abort()
  })
  const { session, end } = await run(engine, { signal: controller.signal })
  expect(end.status).toBe("interrupted")
  expect((await toolParts(session)).map(({ state }) => state.status)).toEqual(["error", "error", "error"])
})

test.each(["batch", "Batch", "BATCH ", "functions.batch"])(
  "asks about 25 identical calls in one batch as a loop",
  async (name) => {
    const inner = { calls: [{ tool: "write", parameters: { filePath: "x", content: "1" } }] }
    await using engine = await startEngine([batch([name, inner]), { text: "Done." }], {
      ...on,
      permission: "allow",
    })
    const { session } = await run(engine)
    expect((await toolParts(session)).map(({ state }) => state.status)).toEqual(["completed", "error"])
    expect(existsSync(engine.project.path("x"))).toBe(false)
  },
)

test("the same call 25 times in one batch is asked about like a loop", async () => {
  let count = 0
  const step = tool("step", async () => {
    count += 1
    return { title: "step", output: "" }
  })
  const same = Array.from({ length: 25 }, (): Inner => ["Step", {}])
  await using engine = await startEngine([batch(...same), { text: "Done." }], {
    ...on,
    tools: [step],
    permission: { step: "allow" },
  })
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    request.reply("reject")
  })
  await run(engine)
  expect(count).toBe(2)
  expect(new Set(asked)).toEqual(new Set(["doom_loop"]))
})
