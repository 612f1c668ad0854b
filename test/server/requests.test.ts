import { readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { setUp } from "./start-server.ts"

const write = (filePath: string, content = "new\n") => ({ name: "write", arguments: { filePath, content } })

/** Starts a server whose model writes a file in its first step, and waits for the permission request. */
async function asked(calls: { name: string; arguments: Record<string, unknown> }[] = [write("a.txt")]) {
  const setup = await setUp(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user" ? { text: "I write.", calls } : { text: "Done." },
    { files: { "old.txt": "old\n" } },
  )
  const path = await setup.session()
  await setup.post(`${path}/input`, { text: "Write it." })
  await expect.poll(async () => (await setup.get(path)).body.status).toBe("waiting")
  const { body } = await setup.get(`/request?session=${path.slice(9)}`)
  return { ...setup, path, waiting: body.items[0] }
}

test("lists a permission request and applies the reply", async () => {
  const { get, post, path, waiting, project } = await asked()
  expect(waiting).toMatchObject({ type: "permission", permission: "edit", sessionID: path.slice(9) })
  const reply = await post(`/request/${waiting.id}/reply`, { reply: "once" }, { scope: "reply" })
  expect(reply).toMatchObject({ status: 200, body: { id: waiting.id, first: { reply: "once" } } })
  expect((await post(`${path}/wait`)).body.run).toMatchObject({ status: "completed", text: "Done." })
  expect(await readFile(project.path("a.txt"), "utf8")).toBe("new\n")
  expect((await get("/request")).body).toEqual({ items: [] })
})

test("answers a second reply with the first", async () => {
  const { post, path, waiting, project } = await asked()
  const first = { reply: "reject", message: "Not there." }
  expect((await post(`/request/${waiting.id}/reply`, first)).status).toBe(200)
  await post(`${path}/wait`)
  for (const second of [{ reply: "once" }, { reply: "project" }, { dismissed: true }]) {
    const { status, body } = await post(`/request/${waiting.id}/reply`, second)
    expect([status, body.error]).toEqual([
      409,
      { code: "request.answered", message: expect.any(String), details: { first } },
    ])
  }
  await expect(readFile(project.path("a.txt"))).rejects.toThrow("ENOENT")
})

test("applies one of several replies that arrive together", async () => {
  const { post, waiting } = await asked()
  const replies = ["project", "once", "reject", "session", "once"]
  const answers = await Promise.all(replies.map((reply) => post(`/request/${waiting.id}/reply`, { reply })))
  const winners = answers.filter(({ status }) => status === 200)
  expect(winners).toHaveLength(1)
  for (const { status, body } of answers)
    if (status !== 200) expect([status, body.error.details.first]).toEqual([409, winners[0]?.body.first])
})

test("keeps a request open after a reply that does not fit", async () => {
  const { get, post, waiting } = await asked()
  for (const invalid of [
    {},
    { reply: "always" },
    { reply: "once", pattern: "*" },
    { reply: "once", message: "x" },
    { reply: "once", extra: true },
    { answers: [["yes"]] },
    { dismissed: true },
    { dismissed: false },
    "once",
  ]) {
    const { status } = await post(`/request/${waiting.id}/reply`, invalid)
    expect(status, JSON.stringify(invalid)).toBe(400)
  }
  expect((await get("/request")).body.items).toHaveLength(1)
  expect((await post(`/request/${waiting.id}/reply`, { reply: "once" })).status).toBe(200)
  expect((await post("/request/per_unknown/reply", { reply: "once" })).body.error.code).toBe(
    "request.unknown",
  )
})

test("names the valid replies when a reply is not one of them", async () => {
  const { post, waiting } = await asked()
  for (const invalid of [{}, { reply: "allow" }]) {
    const { status, body } = await post(`/request/${waiting.id}/reply`, invalid)
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('"once" | "session"')])
  }
})

test("does not take an input for a reply", async () => {
  const { get, post, path, waiting } = await asked()
  await post(`${path}/input`, { text: "yes", delivery: "steer" })
  await post(`${path}/input`, { text: "once", delivery: "queue" })
  expect((await get("/request")).body.items).toMatchObject([{ id: waiting.id }])
  expect((await get(path)).body.status).toBe("waiting")
})

test("ends a request with the interrupt of its run", async () => {
  const { get, post, path, waiting } = await asked()
  expect(await post(`${path}/interrupt`)).toMatchObject({ status: 200, body: { withdrawn: [] } })
  expect((await get("/request")).body.items).toEqual([])
  expect((await get(path)).body.status).toBe("idle")
  expect((await post(`/request/${waiting.id}/reply`, { reply: "once" })).status).toBe(409)
})

test("grants a narrower pattern, but not a wider one, and revokes grants", async () => {
  const call = { name: "bash", arguments: { command: "git tag v1", description: "Tag" } }
  const { get, post, request, path, waiting } = await asked([call])
  expect(waiting).toMatchObject({ permission: "bash", patterns: ["git tag v1"] })
  const wide = await post(`/request/${waiting.id}/reply`, { reply: "project", pattern: "*" })
  expect([wide.status, wide.body.error.code]).toEqual([400, "usage"])
  const narrow = { reply: "project", pattern: "git tag v1" }
  expect((await post(`/request/${waiting.id}/reply`, narrow)).status).toBe(200)
  await post(`${path}/wait`)
  const { items } = (await get("/grant")).body
  expect(items).toMatchObject([
    { scope: "project", permission: "bash", pattern: "git tag v1", action: "allow" },
  ])
  expect((await request("DELETE", "/grant/gra_unknown")).body.error.code).toBe("grant.unknown")
  expect((await request("DELETE", `/grant/${items[0].id}`)).status).toBe(204)
  expect((await get("/grant")).body.items).toEqual([])
})

test("answers and dismisses questions", async () => {
  const { get, post, session } = await setUp(({ body: { messages } }) =>
    messages.at(-1)?.role === "user"
      ? {
          calls: [
            {
              name: "question",
              arguments: { questions: [{ question: "Which?", options: [{ label: "A" }] }] },
            },
          ],
        }
      : { text: String(messages.at(-1)?.content) },
  )
  const path = await session()
  const next = async () => {
    await expect.poll(async () => (await get("/request")).body.items.length).toBe(1)
    return (await get("/request")).body.items[0]
  }
  await post(`${path}/input`, { text: "Ask." })
  const first = await next()
  expect(first).toMatchObject({ type: "question", questions: [{ question: "Which?" }] })
  for (const invalid of [{ reply: "once" }, { answers: [] }, { answers: [["A", "B"]] }])
    expect((await post(`/request/${first.id}/reply`, invalid)).status).toBe(400)
  expect((await post(`/request/${first.id}/reply`, { answers: [["B"]] })).status).toBe(200)
  expect((await post(`${path}/wait`)).body.run.text).toContain("B")
  expect((await post(`/request/${first.id}/reply`, { dismissed: true })).body.error.details).toEqual({
    first: { answers: [["B"]] },
  })
  await post(`${path}/input`, { text: "Ask." })
  const second = await next()
  expect((await post(`/request/${second.id}/reply`, { dismissed: true })).status).toBe(200)
  expect((await post(`${path}/wait`)).body.run.status).toBe("completed")
})
