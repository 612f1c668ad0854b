import { readFile, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp } from "./start-server.ts"

/** Calls these tools in the first step of each prompt. */
function calling(...calls: { name: string; arguments: Record<string, unknown> }[]): Script {
  return ({ body: { messages } }) => (messages.at(-1)?.role === "user" ? { calls } : { text: "Done." })
}

const allowed = { engine: { permission: { "*": "allow" as const } } }

test("shows the changed files, and undoes and redoes the turn", async () => {
  const script = calling(
    { name: "write", arguments: { filePath: "new.txt", content: "one\n" } },
    { name: "edit", arguments: { filePath: "old.txt", oldString: "old", newString: "changed" } },
  )
  const { get, post, session, project } = await setUp(script, { ...allowed, files: { "old.txt": "old\n" } })
  const path = await session()
  await post(`${path}/input`, { text: "Read old.txt and change it. @old.txt" })
  expect((await post(`${path}/wait`)).body.run.status).toBe("completed")
  const { items } = (await get(`${path}/diff`)).body
  expect(items).toMatchObject([
    { path: project.path("new.txt"), kind: "added", diff: expect.stringContaining("+one") },
    { path: project.path("old.txt"), kind: "changed", diff: expect.stringContaining("-old\n+changed") },
  ])
  const undone = await post(`${path}/undo`)
  expect(undone).toMatchObject({ status: 200, body: { files: [{}, {}], refused: [] } })
  expect(await readFile(project.path("old.txt"), "utf8")).toBe("old\n")
  expect((await get(`${path}/diff`)).body.items).toEqual([])
  expect(await post(`${path}/undo`)).toMatchObject({
    status: 409,
    body: { error: { code: "session.nothing-to-undo" } },
  })
  expect((await post(`${path}/redo`)).status).toBe(200)
  await writeFile(project.path("old.txt"), "by the user\n")
  const refused = await post(`${path}/undo`)
  expect(refused).toMatchObject({
    status: 409,
    body: {
      error: {
        code: "session.undo",
        message: expect.stringContaining('{"others": true}'),
        details: { files: [{ path: project.path("old.txt"), why: "changed" }] },
      },
    },
  })
  expect(refused.body.error.message).not.toContain("--")
  expect((await post(`${path}/undo`, { others: true })).body.refused).toMatchObject([{ why: "changed" }])
})

test("advises a client to undo fewer turns if several cannot be undone together", async () => {
  const script: Script = ({ body: { messages } }) =>
    messages.at(-1)?.role === "user"
      ? { calls: [{ name: "write", arguments: { filePath: `${messages.length}.txt`, content: "one\n" } }] }
      : { text: "Done." }
  const { get, post, session } = await setUp(script, allowed)
  const path = await session()
  for (const text of ["One", "Two"]) {
    await post(`${path}/input`, { text })
    await post(`${path}/wait`)
  }
  const [file] = (await get(`${path}/diff`)).body.items
  await writeFile(file.path, "by the user\n")
  const [first] = (await get(`${path}/message`)).body.items
  const { status, body } = await post(`${path}/undo`, { through: first.message.id })
  expect(status).toBe(409)
  expect(body.error.message).toMatch(
    /^Cannot undo the 2 turns.*\nCheck these files first, or undo fewer turns\.$/s,
  )
})

test("forks a session, also at a message", async () => {
  const { get, post, session } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  for (const text of ["One", "Two"]) {
    await post(`${path}/input`, { text })
    await post(`${path}/wait`)
  }
  const [first] = (await get(`${path}/message`)).body.items
  const whole = await post(`${path}/fork`)
  expect(whole.status).toBe(201)
  expect((await get(`/session/${whole.body.id}/message`)).body.items).toHaveLength(4)
  const part = await post(`${path}/fork`, { at: first.message.id })
  expect((await get(`/session/${part.body.id}/message`)).body.items).toHaveLength(2)
  expect(await post(`${path}/fork`, { at: "msg_unknown" })).toMatchObject({
    status: 404,
    body: { error: { code: "message.unknown" } },
  })
})

test("exports and imports a session", async () => {
  const { get, post, session, directory } = await setUp([{ text: "Hello." }])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  await post(`${path}/wait`)
  const { body: archive } = await get(`${path}/export`)
  expect(archive.format).toBe("tackle.session")
  expect(await post("/session/import", { directory, archive })).toMatchObject({
    status: 409,
    body: { error: { code: "session.exists", message: expect.stringContaining('{"copy": true}') } },
  })
  const copy = await post("/session/import", { directory, archive, copy: true })
  expect(copy).toMatchObject({ status: 201, body: { title: "Hi" } })
  expect((await get(`/session/${copy.body.id}/message`)).body.items).toHaveLength(2)
  expect((await post("/session/import", { directory, archive: { ...archive, format: "x" } })).status).toBe(
    400,
  )
  expect((await post("/session/import", { directory: "/", archive, copy: true })).status).toBe(403)
  const { body: sanitized } = await get(`${path}/export?sanitize=true`)
  expect(JSON.stringify(sanitized)).not.toContain("Hello")
})

test("returns the to-do list", async () => {
  const todo = { content: "Write", status: "pending", priority: "high" }
  const { get, post, session } = await setUp(
    calling({ name: "todowrite", arguments: { todos: [todo] } }),
    allowed,
  )
  const path = await session()
  expect((await get(`${path}/todo`)).body).toEqual({ items: [] })
  await post(`${path}/input`, { text: "Plan" })
  await post(`${path}/wait`)
  expect((await get(`${path}/todo`)).body).toEqual({ items: [todo] })
})

test("lists the sessions of subagents", async () => {
  const { get, post, session } = await setUp(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user" && messages.at(-1)?.content !== "Look around."
        ? {
            calls: [
              {
                name: "task",
                arguments: { description: "Look", prompt: "Look around.", subagent_type: "explore" },
              },
            ],
          }
        : { text: "Done." },
    allowed,
  )
  const path = await session()
  await post(`${path}/input`, { text: "Start a subagent." })
  expect((await post(`${path}/wait`)).body.run.status).toBe("completed")
  expect((await get(`${path}/children`)).body.items).toMatchObject([
    { parentID: path.slice(9), agent: "explore", status: "idle" },
  ])
  expect((await get("/session")).body.items).toHaveLength(1)
})

test("reports why a session cannot be compacted", async () => {
  const { post, session } = await setUp([])
  const path = await session()
  const { status, body } = await post(`${path}/compact`)
  expect([status, body]).toEqual([200, expect.objectContaining({ summarized: false })])
})
