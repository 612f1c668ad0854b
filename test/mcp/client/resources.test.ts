import { expect, test } from "vitest"
import { startEngine } from "../../session/engine.ts"
import { resultsOf, run } from "../../session/run.ts"
import { realServer, scriptedServer } from "./servers.ts"

const { settings: everything } = realServer("everything")
const document = "demo://resource/static/document/architecture.md"

test("lets the model list and read resources after the user allows it", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "mcp_list_resources", arguments: { server: "everything" } }] },
      { calls: [{ name: "mcp_read_resource", arguments: { server: "everything", uri: document } }] },
      { text: "Done." },
    ],
    { mcp: { everything } },
  )
  const asked: unknown[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push([request.permission, request.patterns, request.always])
    void request.reply("once")
  })
  const { session } = await run(engine)
  expect(asked).toEqual([
    ["mcp_list_resources", ["everything"], ["everything"]],
    ["mcp_read_resource", [`everything:${document}`], ["everything:*"]],
  ])
  const [list, read] = await resultsOf(session)
  expect(list).toContain(`${document}: architecture.md - text/markdown`)
  expect(list).toContain("demo://resource/dynamic/text/{resourceId}: ")
  expect(read).toMatch(new RegExp(`^${document}\n# Everything Server`))
})

test("applies rules by server and URI, and attaches bytes", async () => {
  await using engine = await startEngine([], {
    mcp: { everything },
    permission: { mcp_read_resource: { "*": "deny", "everything:demo://resource/dynamic/*": "allow" } },
  })
  const read = (uri: string) =>
    engine.tackle.callTool({
      tool: "mcp_read_resource",
      input: JSON.stringify({ server: "everything", uri }),
    })
  expect((await read(document)).state).toMatchObject({ status: "error" })
  expect((await read("demo://resource/dynamic/blob/1")).state).toMatchObject({
    status: "completed",
    attachments: [{ mime: "text/plain", filename: "demo://resource/dynamic/blob/1" }],
  })
  expect((await read("demo://resource/dynamic/nothing")).state).toMatchObject({
    status: "error",
    error: expect.stringMatching(/could not read demo:\/\/resource\/dynamic\/nothing/),
  })
})

test("offers no resource tools without resources", async () => {
  await using engine = await startEngine([], { mcp: { scripted: scriptedServer("/dev/null").settings } })
  const ids = (await engine.tackle.tools()).map(({ id }) => id)
  expect(ids).toContain("scripted_env")
  expect(ids.filter((id) => id.startsWith("mcp_"))).toEqual([])
})

test("attaches a resource that the user mentions", async () => {
  await using engine = await startEngine([{ text: "Read it." }], {
    mcp: { everything },
    permission: { "mcp_*": "allow" },
  })
  const { session } = await run(engine, { text: `Sum up @everything:${document}, please` })
  const [message] = await session.messages()
  const files = message?.parts.filter((part) => part.type === "file") ?? []
  expect(files).toMatchObject([{ filename: `everything:${document}` }])
  const bytes = Buffer.from(files[0]?.url.split(",")[1] ?? "", "base64").toString()
  expect(bytes).toContain("# Everything Server")
})
