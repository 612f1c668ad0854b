import { resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

const everything = {
  type: "local",
  command: [resolve(import.meta.dirname, "../../node_modules/.bin/mcp-server-everything")],
}
const gone = { type: "local", command: ["./no-such-server"] }

test("mcp list shows tools and problems, for people and for programs", async () => {
  const machine = await createMachine({ config: { mcp: { everything, gone } } })
  const text = await machine.run(["mcp", "list"])
  expect(text).toMatchObject({ code: 0, stderr: "" })
  expect(text.stdout).toMatch(/^everything {2}connected, \d+ tools\n {2}everything_echo {2}Echoes back/m)
  expect(text.stdout).toMatch(/^gone {2}failed\n {2}The MCP server gone cannot be used: .*no-such-server/m)
  const json = await machine.run(["mcp", "list", "--format", "json"])
  expect(JSON.parse(json.stdout)).toMatchObject({
    servers: [
      { id: "everything", status: "connected" },
      { id: "gone", status: "failed", tools: [] },
    ],
  })
})

test("a project's servers are there once it is trusted", async () => {
  const [command] = everything.command
  const machine = await createMachine({
    files: { ".mcp.json": JSON.stringify({ mcpServers: { everything: { command } } }) },
  })
  const before = await machine.run(["mcp", "list"])
  expect(before.stdout).toContain("No MCP servers are in use")
  expect(before.stderr).toContain(".mcp.json: mcp")
  await machine.run(["trust", "--yes"])
  expect((await machine.run(["mcp", "list"])).stdout).toContain("everything_echo")
  const call = ["tool", "call", "everything_get-sum", '{"a":1,"b":2}']
  expect(await machine.run([...call, "--allow", "everything_*"])).toMatchObject({
    code: 0,
    stdout: "The sum of 1 and 2 is 3.\n",
  })
  // Nobody is there to ask.
  expect((await machine.run(call)).code).not.toBe(0)
})
