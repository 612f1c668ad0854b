import { existsSync } from "node:fs"
import { expect, test } from "vitest"
import { resultsOf, run, toolParts } from "../session/run.ts"
import { callTool, startPluginEngine } from "./engine.ts"

/** Returns a plugin with these hooks. */
const plugin = (hooks: string) => `export default async ({ directory }) => ({ ${hooks} })`

/** A tool that returns its arguments, or fails on request. */
const say = `tool: { say: { description: "Says", args: { text: { type: "string" } }, async execute(args) {
  if (args.text === "fail") throw new Error("it broke")
  return { title: "said", output: JSON.stringify(args), metadata: { kept: 1 } }
} } }`

test("before changes arguments, in place or as a whole, one plugin after the other", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.before": async (input, output) => { output.args.text += "A" + input.tool }`,
      ),
      "b.mjs": plugin(
        `"tool.execute.before": async (input, output) => { output.args = { text: output.args.text + "B" } }`,
      ),
    },
  })
  expect(await callTool(engine.tackle, "say", { text: "x" })).toBe('{"text":"xAsayB"}')
})

test("validates changed arguments and checks their permission", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`"tool.execute.before": async ({ tool }, { args }) => {
        if (args.filePath === "ok.txt") args.filePath = "secret/key.txt"
        if (args.filePath === "bad.txt") args.limit = "many"
      }`),
    },
    others: { "ok.txt": "fine", "bad.txt": "bad", "secret/key.txt": "secret" },
    permission: { "*": "allow", read: { "*": "allow", "secret/*": "deny" } },
  })
  expect(await callTool(engine.tackle, "read", { filePath: "ok.txt" })).toContain("denied by a rule")
  expect(await callTool(engine.tackle, "read", { filePath: "bad.txt" })).toContain("limit: expected number")
})

test("passes invalid arguments to before, which can correct them", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`"tool.execute.before": async (_, { args }) => {
        if (args.where) { args.filePath = args.where; delete args.where }
      }`),
    },
    others: { "a.txt": "of a" },
  })
  expect(await callTool(engine.tackle, "read", { where: "a.txt" })).toContain("of a")
  expect(await callTool(engine.tackle, "read", { place: "a.txt" })).toContain(
    "filePath: expected string, got nothing",
  )
})

test("stores the call that ran", async () => {
  await using engine = await startPluginEngine({
    files: { "a.mjs": plugin(`"tool.execute.before": async (_, { args }) => { args.filePath = "b.txt" }`) },
    others: { "b.txt": "of b" },
    script: [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }] }, { text: "Done." }],
  })
  const { session } = await run(engine)
  expect((await toolParts(session))[0]?.state).toMatchObject({
    status: "completed",
    input: { filePath: "b.txt" },
    output: expect.stringContaining("of b"),
  })
})

test("before blocks a call by throwing, with the plugin's name and reason, and stays enabled", async () => {
  await using engine = await startPluginEngine({
    files: {
      "guard.mjs": plugin(`"tool.execute.before": async (_, { args }) => {
        if (args.command?.includes("touch")) throw new Error("no touching")
      }`),
    },
    script: [
      {
        calls: [
          { name: "bash", arguments: { command: "touch made" } },
          { name: "bash", arguments: { command: "echo hi" } },
        ],
      },
      { calls: [{ name: "bash", arguments: { command: "touch again" } }] },
      { text: "Done." },
    ],
  })
  const { session, end } = await run(engine)
  const [blocked, ran, again] = await resultsOf(session)
  expect(blocked).toMatch(/The plugin \S+guard\.mjs blocked this call: no touching/)
  expect(ran).toContain("hi")
  expect(again).toContain("no touching")
  expect((await toolParts(session))[0]?.state).toMatchObject({ metadata: { kind: "blocked" } })
  expect(existsSync(engine.project.path("made"))).toBe(false)
  expect(engine.problems).toEqual([])
  expect(end.exitCode).toBe(0)
})

test("after changes title, output and metadata, and the error of a failed call", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`${say}, "tool.execute.after": async (input, output) => {
        output.title = "new title"
        output.output += " [" + input.status + " " + input.args.text + "]"
        output.metadata.kind = "mine"
      }`),
    },
    permission: { "*": "allow", bash: "deny" },
    script: [
      {
        calls: [
          { name: "say", arguments: { text: "x" } },
          { name: "say", arguments: { text: "fail" } },
          { name: "read", arguments: { filePath: "none.txt" } },
        ],
      },
      { text: "Done." },
    ],
  })
  const { session } = await run(engine)
  const states = (await toolParts(session)).map(({ state }) => state)
  expect(states).toMatchObject([
    { title: "new title", output: '{"text":"x"} [completed x]', metadata: { kept: 1, kind: "mine" } },
    { status: "error", error: "it broke [error fail]", metadata: { kind: "failed" } },
    {
      status: "error",
      error: expect.stringMatching(/none\.txt[\s\S]*\[error undefined\]/),
      metadata: { kind: "failed" },
    },
  ])
})

test("after runs for refused calls too", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.after": async (_, output) => { output.output = "heard: " + output.output }`,
      ),
    },
    permission: { "*": "allow", say: "ask" },
  })
  engine.tackle.on("permission.asked", ({ reply }) => void reply("reject"))
  expect(await callTool(engine.tackle, "say", { text: "x" })).toMatch(/^failed: heard: The user refused/)
})

test("cuts a long output of after", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.after": async (_, output) => { output.output = "long\\n".repeat(5000) }`,
      ),
    },
  })
  const output = await callTool(engine.tackle, "say", { text: "x" })
  expect(output.split("\n").length).toBeLessThan(2_100)
  expect(output).toContain(engine.project.path(".data"))
})

test.each([
  ["throws", `throw new Error("boom")`, "boom"],
  ["takes too long", "return new Promise(() => {})", "did not finish within 150 ms"],
  ["returns an invalid output", "output.output = 7", "output: expected string, got 7"],
])("reports an after that %s, ignores its changes, and disables its plugin", async (_, body, reason) => {
  await using engine = await startPluginEngine({
    files: {
      "a-bad.mjs": plugin(`${say}, "tool.execute.after": (_, output) => { output.title = "bad"; ${body} }`),
      "b-good.mjs": plugin(`"tool.execute.after": (_, output) => { output.output += "!" }`),
    },
    limits: { plugin: { hookMs: 150 } },
  })
  expect(await callTool(engine.tackle, "say", { text: "x" })).toBe('{"text":"x"}!')
  expect(await callTool(engine.tackle, "say", { text: "y" })).toBe('{"text":"y"}!')
  expect(engine.problems).toEqual([
    expect.stringMatching(new RegExp(`a-bad\\.mjs failed in its hook tool\\.execute\\.after: .*${reason}`)),
  ])
})

test("a slow before blocks its call and is disabled; later changes have no effect", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`${say}, "tool.execute.before": async (_, output) => {
        await new Promise((resolve) => setTimeout(resolve, 250))
        output.args.text = "late"
      }`),
    },
    limits: { plugin: { hookMs: 100 } },
  })
  expect(await callTool(engine.tackle, "say", { text: "x" })).toContain(
    "blocked this call: it did not finish within 100 ms",
  )
  expect(await callTool(engine.tackle, "say", { text: "y" })).toBe('{"text":"y"}')
  expect(engine.problems).toHaveLength(1)
})

test("reports an error that escapes a plugin", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.before": async () => { void Promise.reject(new Error("left behind")) }`,
      ),
    },
  })
  expect(await callTool(engine.tackle, "say", { text: "x" })).toBe('{"text":"x"}')
  await expect
    .poll(() => engine.problems)
    .toEqual([expect.stringMatching(/error in the plugin .*a\.mjs: .*left behind/)])
})

test("stops waiting for a running after when the run is interrupted", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.after": () => { globalThis.afterBegan = true; return new Promise(() => {}) }`,
      ),
    },
    limits: { plugin: { hookMs: 60_000 } },
  })
  const stop = new AbortController()
  const call = engine.tackle.callTool({ tool: "say", input: '{"text":"x"}', signal: stop.signal })
  await expect.poll(() => Reflect.get(globalThis, "afterBegan")).toBe(true)
  stop.abort()
  expect((await call).state).toMatchObject({ status: "completed", output: '{"text":"x"}' })
})

test("does not wait for a plugin after an interrupt", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `${say}, "tool.execute.before": () => { globalThis.hookBegan = true; return new Promise(() => {}) }, "tool.execute.after": () => new Promise(() => {})`,
      ),
    },
    limits: { plugin: { hookMs: 60_000 } },
  })
  const stop = new AbortController()
  const call = engine.tackle.callTool({ tool: "say", input: '{"text":"x"}', signal: stop.signal })
  await expect.poll(() => Reflect.get(globalThis, "hookBegan")).toBe(true)
  stop.abort()
  expect((await call).state).toMatchObject({ status: "error", metadata: { kind: "aborted" } })
})
