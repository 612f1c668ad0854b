import { mkdir, rm, symlink, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { realPath } from "../../src/util/paths.ts"
import { setUp } from "./start-server.ts"

test("runs a prompt and returns the messages", async () => {
  const { post, get, session, problems } = await setUp([{ text: "Hello." }])
  const path = await session()
  const sent = await post(`${path}/input`, { text: "Hi", id: "one" })
  expect(sent).toMatchObject({ status: 202, body: { id: "one", state: "pending", seq: expect.any(Number) } })
  const waited = await post(`${path}/wait`)
  expect(waited.body).toMatchObject({ status: "idle", run: { status: "completed", text: "Hello." } })
  const { body } = await get(`${path}/message`)
  expect(body.items.map(({ message }: { message: { role: string } }) => message.role)).toEqual([
    "user",
    "assistant",
  ])
  expect((await get(path)).body).toMatchObject({ status: "idle", title: "Hi", seq: expect.any(Number) })
  expect(problems).toEqual([])
})

test("pages through sessions and messages", async () => {
  const { post, get, session } = await setUp(() => ({ text: "Hello." }))
  const paths = []
  for (let count = 0; count < 5; count += 1) paths.unshift(await session())
  const ids: string[] = []
  for (let next = ""; ; ) {
    const { body } = await get(`/session?limit=2${next && `&cursor=${next}`}`)
    ids.push(...body.items.map(({ id }: { id: string }) => id))
    if (body.next === undefined) break
    next = body.next
  }
  expect(ids.map((id) => `/session/${id}`)).toEqual(paths)
  const [path = ""] = paths
  for (const text of ["One", "Two"]) {
    await post(`${path}/input`, { text })
    await post(`${path}/wait`)
  }
  const { body: all } = await get(`${path}/message`)
  expect([all.items.length, all.next]).toEqual([4, undefined])
  const { body: newest } = await get(`${path}/message?limit=3`)
  expect(newest.items).toEqual(all.items.slice(1))
  const { body: older } = await get(`${path}/message?limit=3&before=${newest.next}`)
  expect(older).toEqual({ items: all.items.slice(0, 1) })
  for (const query of ["limit=0", "limit=x", "limit=1001", "cursor=x", "unknown=1"])
    expect((await get(`/session?${query}`)).status, query).toBe(400)
})

test("changes the title, agent and model of a session", async () => {
  const { get, request, session, model, post } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  const change = (body: unknown) => request("PATCH", path, { body })
  expect((await change({ title: "New", agent: "plan", model: "test/other" })).body).toMatchObject({
    title: "New",
    agent: "plan",
    model: { providerID: "test", modelID: "other" },
  })
  await post(`${path}/input`, { text: "Hi" })
  await post(`${path}/wait`)
  expect(model.requests.at(-1)?.body.model).toBe("other")
  expect((await get(path)).body.title).toBe("New")
  expect((await change({ agent: "unknown" })).status).toBe(400)
  expect((await change({ model: "test/unknown" })).status).toBe(400)
  expect((await change({ status: "idle" })).status).toBe(400)
})

test("changes the title during a run, but not the agent", async () => {
  const gate = Promise.withResolvers<void>()
  const { request, session, post, get } = await setUp(async () => {
    await gate.promise
    return { text: "Hello." }
  })
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  await expect.poll(async () => (await get(path)).body.status).toBe("running")
  await expect.poll(async () => (await get(`${path}/message`)).body.items.length).toBeGreaterThan(0)
  expect((await request("PATCH", path, { body: { title: "New" } })).status).toBe(200)
  const busy = await request("PATCH", path, { body: { agent: "plan" } })
  expect([busy.status, busy.body.error.code]).toEqual([409, "session.busy"])
  gate.resolve()
  await post(`${path}/wait`)
  expect((await get(path)).body.title).toBe("New")
})

test("refuses directories that are outside the roots or not directories", async () => {
  const { post, get, directory, project } = await setUp([], { files: { file: "" } })
  await mkdir(project.path("inside"))
  await symlink("/", project.path("link"))
  await symlink(project.path("inside"), project.path("alias"))
  for (const [given, status] of [
    ["/", 403],
    ["/tmp", 403],
    ["/nowhere/at/all", 403],
    [`${directory}/..`, 403],
    [`${directory}/../..`, 403],
    [`${directory}x`, 403],
    [`${directory}/link`, 403],
    [`${directory}/link/etc`, 403],
    ["inside", 400],
    [".", 400],
    ["", 400],
    ["~", 400],
    [`${directory}/\0`, 400],
    [`${directory}/missing`, 400],
    [`${directory}/file`, 400],
  ] as const) {
    const { status: actual, body } = await post("/session", { directory: given })
    expect([actual, body.error.message], given).toEqual([status, expect.any(String)])
    expect((await get(`/tool?directory=${encodeURIComponent(given)}`)).status, given).toBe(status)
  }
  expect((await post("/session", { directory: `${directory}/inside/../inside/` })).status).toBe(201)
  const alias = await post("/session", { directory: `${directory}/alias` })
  expect(alias.body.directory).toBe(`${directory}/inside`)
})

test("serves no session of another directory", async () => {
  const store = createMemoryStore()
  const other = await temporaryProject({})
  const tackle = await createTackle({ directory: other.directory, dataDirectory: other.path(".data"), store })
  const { id } = await tackle.sessions.create()
  await tackle.close()
  const { get, post, request } = await setUp([], { store })
  for (const path of ["", "/message", "/input", "/event", "/todo", "/diff", "/export", "/children"]) {
    const { status, body } = await get(`/session/${id}${path}`)
    expect([status, body.error?.code], path).toEqual([403, "directory.forbidden"])
  }
  expect((await post(`/session/${id}/input`, { text: "Hi" })).status).toBe(403)
  expect((await post(`/session/${id}/fork`)).status).toBe(403)
  expect((await request("DELETE", `/session/${id}`)).status).toBe(403)
  expect((await get(`/request?session=${id}`)).status).toBe(403)
  expect((await get("/session")).body.items).toEqual([])
  await other.remove()
})

test("deletes a session whose directory no longer exists", async () => {
  const { post, get, request, project, directory } = await setUp()
  await mkdir(project.path("gone"))
  const { body } = await post("/session", { directory: `${directory}/gone` })
  await rm(project.path("gone"), { recursive: true })
  expect((await get(`/session/${body.id}`)).status).toBe(200)
  const sent = await post(`/session/${body.id}/input`, { text: "Hi" })
  expect(sent.body.error).toMatchObject({ code: "directory.invalid" })
  expect((await request("DELETE", `/session/${body.id}`)).status).toBe(204)
})

test("refuses a change without fields, and stores nothing", async () => {
  const { get, post, request, session } = await setUp([{ text: "Hello.", delayMs: 60_000 }])
  const path = await session()
  await post(`${path}/input`, { text: "First" })
  const input = await post(`${path}/input`, { text: "Second", delivery: "queue" })
  const { seq } = (await get(path)).body
  for (const changed of [path, `${path}/input/${input.body.id}`])
    expect(await request("PATCH", changed, { body: {} })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("at least one field") } },
    })
  expect((await get(path)).body.seq).toBe(seq)
})

test("names the parameter of the query that is not valid", async () => {
  const { get, session } = await setUp()
  const path = await session()
  for (const [query, problem] of [
    ["before=zzz", "before: expected the id of a message"],
    ["limit=x", "limit: expected a whole number from 1 to 1000"],
    ["limit=", "limit: expected a whole number from 1 to 1000"],
  ])
    expect(await get(`${path}/message?${query}`)).toMatchObject({
      status: 400,
      body: { error: { code: "request.invalid", message: `The query is not valid: ${problem}.` } },
    })
})

test("answers unknown routes, sessions and inputs with 404", async () => {
  const { get, post, request, session } = await setUp()
  const path = await session()
  for (const [method, route, code] of [
    ["GET", "/nothing", "route.unknown"],
    ["POST", path, "route.unknown"],
    ["PUT", path, "method.unsupported"],
    ["OPTIONS", path, "method.unsupported"],
    ["GET", "/session/ses_unknown", "session.unknown"],
    ["GET", "/session/..%2f..%2fetc", "session.unknown"],
    ["GET", "/session/ses_unknown/event", "session.unknown"],
    ["GET", `${path}/input/unknown`, "input.unknown"],
    ["DELETE", `${path}/input/unknown`, "input.unknown"],
    ["DELETE", "/session/ses_unknown", "session.unknown"],
  ] as const)
    expect((await request(method, route)).body.error?.code, `${method} ${route}`).toBe(code)
  expect((await post("/session/ses_unknown/input", { text: "Hi" })).status).toBe(404)
  expect((await get(`/session/${"x".repeat(5_000)}`)).status).toBe(404)
  for (const route of [path, `${path}/event`, "/event"])
    expect((await request("HEAD", route)).status, route).toBe(405)
})

test("reports a project whose config is invalid, and serves the others", async () => {
  const { post, directory, project, problems } = await setUp([], {
    openEngine: async () => {
      throw new Error("broken")
    },
  })
  await mkdir(project.path("sub"))
  await writeFile(project.path("sub/x"), "")
  const { status, body } = await post("/session", { directory })
  expect([status, body.error.code]).toEqual([500, "internal"])
  expect(body.error.message).not.toContain("broken")
  expect(problems).toEqual([expect.stringContaining("broken")])
})

test("resumes inputs that an earlier server left, except those that are paused", async () => {
  const store = createMemoryStore()
  const gate = Promise.withResolvers<void>()
  const model = await startModelServer({
    script: async ({ body: { messages } }) => {
      if (messages.at(-1)?.content === "First") await gate.promise
      return { text: "Hello." }
    },
  })
  const project = await temporaryProject({})
  const openEngine = (directory: string) =>
    createTackle({
      directory,
      dataDirectory: project.path(".data"),
      store,
      model: "test/m",
      providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
    })
  const roots = [realPath(project.directory)]
  const first = await setUp([], { store, openEngine, roots })
  const { body: running } = await first.post("/session", { directory: project.directory })
  const { body: paused } = await first.post("/session", { directory: project.directory })
  await first.post(`/session/${running.id}/input`, { text: "First" })
  await first.post(`/session/${running.id}/input`, { text: "Second", delivery: "queue" })
  await expect.poll(() => model.requests.length).toBe(1)
  await first.post(`/session/${paused.id}/input`, { text: "First" })
  await first.post(`/session/${paused.id}/input`, { text: "Third", delivery: "queue" })
  await expect.poll(() => model.requests.length).toBe(2)
  await first.post(`/session/${paused.id}/interrupt`)
  await first.server.close()
  const second = await setUp([], { store, openEngine, roots })
  await expect.poll(async () => (await second.get(`/session/${running.id}/input`)).body.items).toEqual([])
  await second.post(`/session/${running.id}/wait`)
  expect(model.requests.at(-1)?.body.messages.at(-1)?.content).toBe("Second")
  expect((await second.get(`/session/${paused.id}/input`)).body.items).toMatchObject([
    { text: "Third", paused: true },
  ])
  gate.resolve()
  await second.server.close()
  await model.close()
  await project.remove()
})

test("searches the texts of the sessions that it serves, in pages", async () => {
  const store = createMemoryStore()
  const { post, get, session } = await setUp(() => ({ text: "a needle" }), { store })
  const now = { created: 1, updated: 1 }
  const foreign = { id: "ses_foreign", title: "needle", directory: "/elsewhere", worktree: "/elsewhere" }
  await store.commit([{ kind: "session", session: { ...foreign, agent: "build", time: now } }])
  const paths = [await session(), await session(), await session()]
  for (const path of paths.slice(0, 2)) {
    await post(`${path}/input`, { text: "look" })
    await post(`${path}/wait`)
  }
  const { body } = await get("/session?search=need&limit=1")
  expect(body.items).toMatchObject([{ match: { excerpt: "a needle", marks: [[2, 8]], role: "assistant" } }])
  const { body: rest } = await get(`/session?search=need&cursor=${body.next}`)
  expect([...body.items, ...rest.items].map(({ id }) => `/session/${id}`).sort()).toEqual(
    paths.slice(0, 2).sort(),
  )
  expect((await get(`/session?search=${encodeURIComponent('"* AND (')}`)).body.items).toEqual([])
  expect((await get("/session?search=")).body.items).toHaveLength(3)
})
