import { expect, test } from "vitest"
import { createMachine, modelConfig } from "./run-tackle.ts"

test("lists the sessions that contain all words, with an excerpt", async () => {
  const machine = await createMachine({
    files: { "prices.txt": "hidden output" },
    script: [
      { calls: [{ name: "read", arguments: { filePath: "prices.txt" } }] },
      { text: "The discount of the last order is negative." },
      { text: "Hello." },
    ],
  })
  await machine.run(["run", "what is wrong with the prices?"])
  await machine.run(["run", "say hello"])
  const { stdout } = await machine.run(["session", "list", "--search", "discount ord"])
  expect(stdout).toMatch(
    /^ses_\w+ {2}\S+ \S+ {2}what is wrong with the prices\?\n {2}The discount of the last order is negative\.\n$/,
  )
  const found = async (...args: string[]) =>
    JSON.parse((await machine.run(["session", "list", "--json", ...args])).stdout).sessions
  expect(await found("--search", "WRONG Prices.txt")).toMatchObject([
    { title: "what is wrong with the prices?", match: { excerpt: expect.any(String) } },
  ])
  const [session] = await found("--search", "discount")
  const { excerpt, marks, role, messageID } = session.match
  expect({ excerpt, marks, role }).toEqual({
    excerpt: "The discount of the last order is negative.",
    marks: [[4, 12]],
    role: "assistant",
  })
  expect(messageID).toMatch(/^msg_/)
  expect(await found("--search", "hidden output")).toEqual([])
  expect(await found("--search", "")).toHaveLength(2)
  expect(await machine.run(["session", "list", "--search", '"AND* NEAR('])).toMatchObject({
    code: 0,
    stdout: "No session contains all of these words.\n",
  })
})

test("shows no secret that was stored before it was configured", async () => {
  const machine = await createMachine({ script: [{ text: "It is hunter2-hunter2-hunter2, as you know." }] })
  await machine.run(["run", "what is the key?"])
  const shown = async (apiKey: string) => {
    const { provider } = modelConfig(machine.server.url) as { provider: { test: object } }
    const test = { ...provider.test, options: { baseURL: machine.server.url, apiKey } }
    const env = { TACKLE_CONFIG_CONTENT: JSON.stringify({ model: "test/m", provider: { test } }) }
    return (await machine.run(["session", "list", "--json", "--search", "know"], { env })).stdout
  }
  expect(await shown("another-secret-key")).toContain("hunter2-hunter2-hunter2")
  const hidden = await shown("hunter2-hunter2-hunter2")
  expect(hidden).toContain("as you know")
  expect(hidden).not.toContain("hunter2")
})
