import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { mcpToolID } from "../../../src/mcp/client/tool.ts"
import { temporaryProject } from "../../../src/testing/project.ts"
import { errorMessage } from "../../../src/util/errors.ts"
import { startEngine } from "../../session/engine.ts"
import { resultsOf, run } from "../../session/run.ts"
import { realServer, scriptedServer } from "./servers.ts"

const { settings: everything } = realServer("everything")

test("runs a server's tool after the user allows it", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "everything_get-sum", arguments: { a: 2, b: 3 } }] },
      { calls: [{ name: "everything_get-tiny-image", arguments: {} }] },
      { text: "Done." },
    ],
    { mcp: { everything } },
  )
  const asked: unknown[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push([request.permission, request.patterns])
    void request.reply("once")
  })
  const { session } = await run(engine)
  expect(asked).toEqual([
    ["everything_get-sum", ['{"a":2,"b":3}']],
    ["everything_get-tiny-image", ["{}"]],
  ])
  const [sum, image] = await resultsOf(session)
  expect(sum).toBe("The sum of 2 and 3 is 5.")
  expect(image).toContain("the image you requested")
})

test("sends the server's schema to the model unchanged", async () => {
  await using engine = await startEngine([], { mcp: { everything } })
  const listed = await engine.tackle.tools()
  const echo = listed.find(({ id }) => id === "everything_echo")
  expect(echo).toMatchObject({
    source: "mcp everything",
    offered: true,
    parameters: { properties: { message: { description: "Message to echo" } }, required: ["message"] },
  })
})

test("hides denied and disabled tools of servers", async () => {
  await using engine = await startEngine([], {
    mcp: { everything },
    permission: { "everything_get-*": "deny" },
    disabledTools: ["everything_echo"],
  })
  const offered = (await engine.tackle.tools()).filter((tool) => tool.offered).map(({ id }) => id)
  expect(offered).not.toContain("everything_echo")
  expect(offered).not.toContain("everything_get-sum")
  expect(offered).toContain("everything_trigger-long-running-operation")
})

test("reports progress while the call runs", async () => {
  await using engine = await startEngine([], {
    mcp: { everything },
    permission: { "everything_*": "allow" },
  })
  const { state } = await engine.tackle.callTool({
    tool: "everything_trigger-long-running-operation",
    input: '{"duration":0.2,"steps":2}',
  })
  expect(state).toMatchObject({
    status: "completed",
    output: "Long running operation completed. Duration: 0.2 seconds, Steps: 2.",
    metadata: { progress: { done: expect.any(Number), total: 2 } },
  })
})

test("does not pass provider keys to servers, and skips disabled servers", async () => {
  const project = await temporaryProject({})
  const { settings } = scriptedServer(project.path("log"))
  await using engine = await startEngine([], {
    mcp: { scripted: settings, off: { ...settings, enabled: false }, unknown: { enabled: true } },
    permission: { "*": "allow" },
    environment: { ...process.env, OPENAI_API_KEY: "sk-very-secret", HARMLESS: "yes" },
  })
  const { state } = await engine.tackle.callTool({ tool: "scripted_env", input: "{}" })
  expect(state).toMatchObject({ status: "completed", output: expect.stringContaining('"HARMLESS":"yes"') })
  expect(JSON.stringify(state)).not.toContain("OPENAI_API_KEY")
  expect((await engine.tackle.mcpServers()).map(({ id }) => id)).toEqual(["scripted"])
  await project.remove()
})

test("revokes an approval when the tool's description changes, and reports it", async () => {
  const project = await temporaryProject({})
  const problems: string[] = []
  const call = (name: string) => ({ calls: [{ name, arguments: {} }] })
  const { settings: scripted } = scriptedServer(project.path("log"))
  await using engine = await startEngine(
    [
      call("scripted_odd_n_me"),
      call("scripted_odd_n_me"),
      call("scripted_change"),
      { text: "Done." },
      call("scripted_odd_n_me"),
      { text: "Done." },
    ],
    {
      mcp: { scripted },
      permission: { doom_loop: "allow", scripted_change: "allow" },
      onProblem: (message, error) => problems.push(`${message}: ${errorMessage(error)}`),
    },
  )
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    void request.reply({ reply: "always", scope: "project" })
  })
  await run(engine)
  expect(asked).toEqual(["scripted_odd_n_me"])
  expect(problems).toEqual([])
  await run(engine)
  expect(asked).toEqual(["scripted_odd_n_me", "scripted_odd_n_me"])
  expect(problems).toEqual([
    expect.stringMatching(
      /^an approval was revoked: scripted_odd_n_me: the definition or server of this tool has changed/,
    ),
  ])
  await project.remove()
})

describe("mcpToolID", () => {
  test("has only characters that providers accept", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string({ maxLength: 100 }), (server, tool) => {
        expect(mcpToolID(server, tool)).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      }),
    )
  })

  test("differs for long names with the same start", () => {
    const long = "a".repeat(80)
    expect(mcpToolID("server", `${long}1`)).not.toBe(mcpToolID("server", `${long}2`))
  })
})
