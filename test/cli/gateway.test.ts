import OpenAI from "openai"
import { expect, test } from "vitest"
import { createMachine, until } from "./run-tackle.ts"

test("serves until Ctrl+C and finishes an answer that has begun", async () => {
  const machine = await createMachine({
    script: () => ({
      text: '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>',
      pieceSize: 10,
      pieceDelayMs: 30,
    }),
  })
  const flags = ["--upstream", machine.server.url, "--policy", "synthetic", "--port", "0"]
  const running = machine.start(["gateway", ...flags])
  await until("it says where it is", () => running.stdout.includes("Ctrl+C"))
  const client = new OpenAI({ baseURL: running.stdout.split(" ")[0] ?? "", apiKey: "k", maxRetries: 0 })
  const tools = [{ type: "function" as const, function: { name: "read" } }]
  const messages = [{ role: "user" as const, content: "Go." }]
  const stream = await client.chat.completions.create({ model: "m", messages, tools, stream: true })
  running.child.kill("SIGINT")
  const finish: unknown[] = []
  for await (const { choices } of stream) finish.push(choices[0]?.finish_reason)
  expect(finish.at(-1)).toBe("tool_calls")
  expect(await running.ended).toMatchObject({ code: 0, stderr: "" })
})

test("rejects unusable gateway flags as a usage error", async () => {
  const machine = await createMachine()
  const { code, stderr } = await machine.run(["gateway", "--upstream", "nowhere"])
  expect([code, stderr]).toEqual([2, expect.stringContaining('"nowhere" is not a base URL')])
  const open = await machine.run(["gateway", "--upstream", machine.server.url, "--host", "0.0.0.0"])
  expect([open.code, open.stderr]).toEqual([2, expect.stringContaining("--key")])
})

test("prints what the server supports and the resulting policy in models check", async () => {
  const machine = await createMachine({
    script: () => ({ status: 400, text: "registry/m does not support tools" }),
  })
  const text = await machine.run(["models", "check", "test/m"])
  expect(text.code).toBe(1)
  expect(text.stdout).toMatch(/^no {2}accepts tools: .*does not support tools/)
  expect(text.stdout).toContain("Policy: auto, which means synthetic with this server")
  const json = await machine.run(["models", "check", "test/m", "--format", "json"])
  expect(JSON.parse(json.stdout)).toMatchObject({ model: "test/m", policy: "auto", used: "synthetic" })
  expect((await machine.run(["models", "check", "test/other"])).code).toBe(2)
})
