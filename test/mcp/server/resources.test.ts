import { symlink } from "node:fs/promises"
import { pathToFileURL } from "node:url"
import { expect, test } from "vitest"
import { realServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

const uri = (path: string) => pathToFileURL(path).href

test("reads a whole file under the rules of the read tool", async () => {
  const long = `${"a line\n".repeat(20_000)}the end`
  const engine = await openEngine(
    { permission: { read: { "*": "allow", "*secret*": "deny" } } },
    { "long.txt": long, "secret.txt": "hidden-word", "bytes.bin": "\0\x01\x02" },
  )
  const { client } = await connectClient(engine)
  const read = (path: string) => client.readResource({ uri: uri(engine.project.path(path)) })
  expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([
    { uriTemplate: "file://{+path}" },
  ])
  const [text] = (await read("long.txt")).contents
  expect(text).toEqual({ uri: uri(engine.project.path("long.txt")), mimeType: "text/plain", text: long })
  expect((await read("bytes.bin")).contents).toMatchObject([
    { mimeType: "application/octet-stream", blob: "AAEC" },
  ])
  await expect(read("secret.txt")).rejects.toThrow("denied by a rule")
  await symlink(engine.project.path("secret.txt"), engine.project.path("innocent.txt"))
  await expect(read("innocent.txt")).rejects.toThrow("denied by a rule")
  await expect(read("none.txt")).rejects.toThrow("none.txt")
  await expect(client.readResource({ uri: "file://elsewhere/x" })).rejects.toThrow(
    "is not a file on this machine",
  )
  await expect(client.readResource({ uri: "odd:thing" })).rejects.toThrow("Unknown resource")
})

test("asks the user for files outside the worktree, and refuses them without forms", async () => {
  const engine = await openEngine()
  const outside = await openEngine({}, { "note.txt": "outside" })
  const named = { uri: uri(outside.project.path("note.txt")) }
  const { client } = await connectClient(engine)
  await expect(client.readResource(named)).rejects.toThrow(/no user is available here.*elicitation/s)
  const { client: asking } = await connectClient(engine, { elicitation: { form: {} } }, (created) =>
    created.setRequestHandler("elicitation/create", () => ({
      action: "accept",
      content: { answer: "once" },
    })),
  )
  expect((await asking.readResource(named)).contents).toMatchObject([{ text: "outside" }])
})

test("offers no files without the read tool", async () => {
  const engine = await openEngine({ permission: { "*": "allow" } }, { "a.txt": "a" })
  const bound = { ...engine, connection: { ...engine.connection, tools: ["bash"] } }
  const { client } = await connectClient(bound)
  expect((await client.listResourceTemplates()).resourceTemplates).toEqual([])
  const named = { uri: uri(engine.project.path("a.txt")) }
  await expect(client.readResource(named)).rejects.toThrow("not offered")
})

test("offers a full output only to the client that made the call", async () => {
  const engine = await openEngine({ permission: { bash: "allow" } })
  const changed = Promise.withResolvers<void>()
  const { client } = await connectClient(engine, {}, (created) =>
    created.setNotificationHandler("notifications/resources/list_changed", () => changed.resolve()),
  )
  const { client: other } = await connectClient(engine)
  expect((await client.listResources()).resources).toEqual([])
  const command = "seq 1 30000"
  await client.callTool({ name: "bash", arguments: { command, description: "Count" } })
  await changed.promise
  const [output] = (await client.listResources()).resources
  expect(output).toMatchObject({ description: expect.stringContaining("bash"), mimeType: "text/plain" })
  const { contents } = await client.readResource({ uri: output?.uri ?? "" })
  expect(contents).toMatchObject([{ text: expect.stringMatching(/^1\n2\n.*\n15000\n.*30000/s) }])
  expect((await other.listResources()).resources).toEqual([])
  await expect(other.readResource({ uri: output?.uri ?? "" })).rejects.toThrow("no user is available")
})

test("passes on resources of upstream MCP servers under the rules of the tool that reads them", async () => {
  const { settings: everything } = realServer("everything")
  const engine = await openEngine({
    mcp: { everything },
    permission: { mcp_read_resource: { "*": "allow", "*text/3": "deny" } },
  })
  const { client } = await connectClient(engine)
  const { resources } = await client.listResources()
  const [first] = resources
  const { contents } = await client.readResource({ uri: first?.uri ?? "" })
  expect(contents).toMatchObject([{ uri: first?.uri }])

  const { resourceTemplates } = await client.listResourceTemplates()
  const template =
    resourceTemplates.find(({ uriTemplate }) => uriTemplate.includes("text"))?.uriTemplate ?? ""
  const numbered = (id: number) => client.readResource({ uri: template.replace(/\{.*\}/, String(id)) })
  expect((await numbered(2)).contents).toMatchObject([{ text: expect.stringContaining("2") }])
  await expect(numbered(3)).rejects.toThrow("denied by a rule")
})

test("lets a plugin block a file resource by its path", async () => {
  const files = {
    "no.txt": "hidden-word",
    ".tackle/plugin/guard.mjs": `export default async () => ({
      "tool.execute.before": async ({ tool }, { args }) => {
        if (tool === "read" && args.filePath.endsWith("no.txt")) throw new Error("not that one")
      } })`,
  }
  const { project } = await openEngine({}, files)
  const path = project.path(".tackle/plugin/guard.mjs")
  const engine = await openEngine({ plugins: [{ name: "guard", path }], permission: { "*": "allow" } }, files)
  const { client } = await connectClient(engine)
  const named = { uri: uri(engine.project.path("no.txt")) }
  await expect(client.readResource(named)).rejects.toThrow("not that one")
})
