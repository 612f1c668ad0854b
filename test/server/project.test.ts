import { symlink } from "node:fs/promises"
import { expect, test } from "vitest"
import { setUp, tokens } from "./start-server.ts"

const files = { "src/a.ts": "const answer = 42\n", ".env": "SECRET=1\n" }

test("lists tools, agents, commands, skills, models and MCP servers", async () => {
  const { get } = await setUp([], { engine: { commands: { review: { template: "Review." } } } })
  const names = async (path: string, key = "name") =>
    (await get(path)).body.items.map((item: Record<string, string>) => item[key])
  expect(await names("/tool", "id")).toEqual(expect.arrayContaining(["read", "bash", "edit"]))
  expect(await names("/agent")).toEqual(expect.arrayContaining(["build", "plan"]))
  expect(await names("/command")).toContain("review")
  expect(await names("/skill")).toEqual([])
  expect(await names("/model", "id")).toEqual(expect.arrayContaining(["test/m"]))
  expect(await names("/model?name=test/m", "id")).toEqual(["test/m"])
  expect((await get("/model?name=test/n")).body.error).toMatchObject({ code: "model.not-found" })
  expect(await names("/mcp", "id")).toEqual([])
  expect((await get("/tool?agent=plan")).status).toBe(200)
  expect((await get("/tool?agent=unknown")).status).toBe(400)
})

test("calls a tool", async () => {
  const { post, directory } = await setUp([], { files })
  const call = await post("/tool/read/call", { directory, arguments: { filePath: "src/a.ts" } })
  expect(call).toMatchObject({
    status: 200,
    body: { state: { status: "completed", output: expect.stringContaining("answer = 42") } },
  })
  const wrong = await post("/tool/read/call", { directory, arguments: {} })
  expect(wrong.body.state).toMatchObject({ status: "error", metadata: { kind: "invalid-arguments" } })
  expect((await post("/tool/nothing/call", { directory, arguments: {} })).body.error.code).toBe(
    "tool.unknown",
  )
  expect((await post("/tool/read/call", { directory: "/", arguments: {} })).status).toBe(403)
  expect((await post("/tool/read/call", { directory, arguments: "x" })).status).toBe(400)
})

test("asks before a tool call that the rules do not allow", async () => {
  const { get, post, directory } = await setUp()
  const call = post("/tool/bash/call", {
    directory,
    arguments: { command: "touch x.txt", description: "Create a file" },
  })
  await expect.poll(async () => (await get("/request")).body.items.length).toBe(1)
  const [request] = (await get("/request")).body.items
  await post(`/request/${request.id}/reply`, { reply: "reject" })
  expect((await call).body.state).toMatchObject({ status: "error", metadata: { kind: "refused" } })
})

test("ends a tool call whose client has left", async () => {
  const { get, server, directory } = await setUp()
  const leave = new AbortController()
  const call = fetch(`${server.url}/tool/bash/call`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${tokens.run}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ directory, arguments: { command: "touch x.txt", description: "Create a file" } }),
    signal: leave.signal,
  })
  await expect.poll(async () => (await get("/request")).body.items.length).toBe(1)
  leave.abort()
  await expect(call).rejects.toThrow()
  await expect.poll(async () => (await get("/request")).body.items.length).toBe(0)
})

test("reads and finds files under the rules of the project", async () => {
  const { get, project } = await setUp([], {
    files,
    engine: { permission: { read: { "*": "allow", "*.env": "deny" }, external_directory: "deny" } },
  })
  expect((await get("/file?path=src/a.ts")).body.output).toContain("const answer = 42")
  expect((await get("/file?path=.")).body.output).toContain("src/")
  expect((await get("/find?pattern=**/*.ts")).body.output).toContain("a.ts")
  expect((await get("/find?text=answer")).body.output).toContain("a.ts")
  await symlink("/etc", project.path("link"))
  for (const path of [".env", "/etc/passwd", "../../etc/passwd", "src/../../../etc/passwd", "link/passwd"]) {
    const { status, body } = await get(`/file?path=${encodeURIComponent(path)}`)
    expect([status, body.error?.code], path).toEqual([403, "permission.denied"])
  }
  expect((await get("/find?text=root&path=/etc")).status).toBe(403)
  expect((await get("/file?path=missing.txt")).status).toBe(400)
  expect((await get("/file")).status).toBe(400)
  expect((await get("/find")).status).toBe(400)
  expect((await get("/find?pattern=*&text=x")).status).toBe(400)
  expect((await get("/file?path=src/a.ts&directory=/etc")).status).toBe(403)
})
