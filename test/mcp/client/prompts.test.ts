import { existsSync } from "node:fs"
import { expect, test } from "vitest"
import { startEngine } from "../../session/engine.ts"
import { run } from "../../session/run.ts"
import { realServer } from "./servers.ts"

const { settings: everything } = realServer("everything")

test("lists prompts with their arguments, and fills them in", async () => {
  await using engine = await startEngine([], {
    mcp: { everything, memory: realServer("memory").settings },
  })
  const { tackle } = engine
  const prompts = await tackle.mcpPrompts()
  expect(prompts.find(({ name }) => name === "args-prompt")).toMatchObject({
    server: "everything",
    arguments: [
      { name: "city", required: true },
      { name: "state", required: false },
    ],
  })
  const ask = (name: string, args: Record<string, string> = {}) =>
    tackle.mcpPrompt({ server: "everything", name, arguments: args })
  expect(await ask("args-prompt", { city: "Basel" })).toEqual([
    { role: "user", text: "What's weather in Basel?", attachments: [] },
  ])
  const messages = await ask("resource-prompt", { resourceType: "Text", resourceId: "1" })
  expect(messages.at(-1)?.text).toContain("demo://resource/dynamic/text/1\nResource 1")
})

test("rejects an unknown prompt, an unknown server and a missing argument", async () => {
  await using engine = await startEngine([], { mcp: { everything } })
  const ask = (server: string, name: string) => engine.tackle.mcpPrompt({ server, name, arguments: {} })
  await expect(ask("everything", "args-prompt")).rejects.toThrow(
    /could not fill in the prompt args-prompt: .*city/s,
  )
  await expect(ask("everything", "none")).rejects.toThrow(/could not fill in the prompt none: .*not found/)
  await expect(ask("none", "simple-prompt")).rejects.toThrow(/it is not in the configuration/)
})

test("starts only the server that a command names", async () => {
  await using engine = await startEngine([], {
    mcp: { everything, other: { type: "local", command: ["touch", "started"] } },
  })
  const { tackle, project } = engine
  expect(await tackle.readCommand("/everything:args-prompt Basel")).toMatchObject({ call: { origin: "mcp" } })
  expect(existsSync(project.path("started"))).toBe(false)
  await tackle.mcpPrompts()
  expect(existsSync(project.path("started"))).toBe(true)
})

test("sends a prompt that the user writes as a command", async () => {
  await using engine = await startEngine([{ text: "Sunny." }, { text: "Read." }], { mcp: { everything } })
  const prompted = async (text: string) => {
    const read = await engine.tackle.readCommand(text)
    if (!("call" in read)) throw new Error(`${text} is no command`)
    await run(engine, { text, command: read.call })
    return JSON.stringify(
      engine.server.requests.at(-1)?.body.messages.findLast(({ role }) => role === "user"),
    )
  }
  expect(await prompted("/everything:args-prompt Basel")).toContain("What's weather in Basel?")
  expect(await prompted("/everything:resource-prompt Text 1")).toContain("Resource 1")
  await expect(engine.tackle.readCommand("/everything:args-prompt")).rejects.toThrow(/<city> \[state\]/)
})
