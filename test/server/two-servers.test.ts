import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { createClient } from "../../src/client/client.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Store } from "../../src/store/store.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { realPath } from "../../src/util/paths.ts"
import { followSession } from "../../src/view/follow-session.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { readEvents, setUp, tokens } from "./start-server.ts"

const write = { name: "write", arguments: { filePath: "new.txt", content: "new\n" } }
const question = { name: "question", arguments: { questions: [{ question: "Which one?" }] } }

const script: Script = ({ body: { messages } }) => {
  const last = messages.at(-1)
  if (last?.role !== "user") return { text: "Done." }
  if (JSON.stringify(last).includes("question")) return { calls: [question] }
  return JSON.stringify(last).includes("write") ? { calls: [write] } : { text: "Heard." }
}

describe("two servers on one SQLite database", () => {
  testServers(async () => {
    const data = await temporaryProject()
    onTestFinished(() => data.remove())
    return () => openSqliteStore(data.path("tackle.db"))
  })
})

describePostgres("two servers on one PostgreSQL database", () => {
  let server: PostgresServer
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  testServers(async () => {
    const schema = `servers_${++count}`
    await migratePostgres(server.url(), { schema })
    return () => openPostgresStore(server.url(), { schema })
  })
})

function testServers(database: () => Promise<() => Promise<Store>>): void {
  /** Starts two servers for one project. The first one runs a session that waits for the user. */
  async function start(text: string) {
    const open = await database()
    const project = await temporaryProject()
    onTestFinished(() => project.remove())
    const roots = [realPath(project.directory)]
    const servers = []
    for (let index = 0; index < 2; index += 1) {
      const store = await open()
      onTestFinished(() => store.close())
      servers.push(await setUp(script, { store, roots }))
    }
    const [first, second] = servers as [(typeof servers)[0], (typeof servers)[0]]
    const { body } = await first.post("/session", { directory: roots[0] })
    const path = `/session/${body.id}`
    await first.post(`${path}/input`, { text })
    await expect.poll(async () => (await second.get(path)).body.status).toBe("waiting")
    const { items } = (await second.get(`/request?session=${body.id}`)).body
    expect(items).toHaveLength(1)
    return { first, second, project, path, id: body.id as string, request: items[0] }
  }

  test("list and answer each other's requests; a second reply gets the first", async () => {
    const { first, second, path, request, project } = await start("write")
    expect(request).toMatchObject({ type: "permission", permission: "edit" })
    expect((await second.get("/request")).body.items).toMatchObject([{ id: request.id }])
    expect((await second.post(`/request/${request.id}/reply`, { answers: [["x"]] })).status).toBe(400)

    const reply = { reply: "reject", message: "Not there." }
    expect(await second.post(`/request/${request.id}/reply`, reply)).toMatchObject({
      ...{ status: 200, body: { id: request.id, first: reply } },
    })
    await first.post(`${path}/wait`)
    for (const server of [first, second]) {
      const late = await server.post(`/request/${request.id}/reply`, { reply: "once" })
      expect([late.status, late.body.error.code]).toEqual([409, "request.answered"])
      expect(late.body.error.details).toEqual({ first: reply })
      expect((await server.get("/request")).body.items).toEqual([])
      expect((await server.get(path)).body.status).toBe("idle")
    }
    await expect(project.read("new.txt")).rejects.toThrow("ENOENT")
  })

  test("apply one of several replies that arrive together at both", async () => {
    const { first, second, path, request } = await start("write")
    const replies = ["reject", "once", "project", "session", "reject", "once"]
    const answers = await Promise.all(
      replies.map((reply, index) =>
        [first, second][index % 2]?.post(`/request/${request.id}/reply`, { reply }),
      ),
    )
    const winners = answers.filter((answer) => answer?.status === 200)
    expect(winners).toHaveLength(1)
    for (const answer of answers)
      if (answer?.status !== 200)
        expect([answer?.status, answer?.body.error.details.first]).toEqual([409, winners[0]?.body.first])
    expect((await second.post(`${path}/wait`)).body.status).toBe("idle")
  })

  test("answer questions, wait for runs and interrupt runs of each other", async () => {
    const { first, second, path, request } = await start("question")
    expect(request).toMatchObject({ type: "question", questions: [{ question: "Which one?" }] })
    const waited = second.post(`${path}/wait`)
    expect((await second.post(`/request/${request.id}/reply`, { answers: [["left"]] })).status).toBe(200)
    expect((await waited).body.status).toBe("idle")
    const { body } = await second.get(`${path}/message`)
    expect(JSON.stringify(body.items)).toContain("left")

    await first.post(`${path}/input`, { text: "write" })
    await expect.poll(async () => (await second.get(path)).body.status).toBe("waiting")
    await first.post(`${path}/input`, { text: "later", delivery: "queue" })
    const interrupted = await second.post(`${path}/interrupt`, { clear: true })
    expect(interrupted).toMatchObject({ status: 200, body: { withdrawn: [{ text: "later" }] } })
    expect((await second.get(path)).body.status).toBe("idle")
    expect((await second.get("/request")).body.items).toEqual([])
    expect((await first.post(`${path}/wait`)).body.run).toMatchObject({ status: "interrupted" })
  })

  test("show requests of each other to their clients", async () => {
    const { first, second, path, id } = await start("write")
    const api = createClient({ url: second.server.url, token: tokens.admin })
    const session = await api.sessions.get(id)
    if (!session) throw new Error("the session is not stored")
    const followed = await followSession({ api, session, onChange() {} })
    onTestFinished(() => followed.close())
    const [shown] = followed.state.requests
    expect(shown).toMatchObject({ permission: "edit" })
    expect(await api.requests(id)).toHaveLength(1)
    const all: TackleEvent["type"][] = []
    const controller = new AbortController()
    onTestFinished(() => controller.abort())
    void (async () => {
      for await (const event of readEvents(`${second.server.url}/event`, { signal: controller.signal }))
        if (typeof event === "object") all.push(event.data.type)
    })().catch(() => {})
    await expect.poll(() => all).toContain("permission.asked")

    expect(await api.reply(shown?.id ?? "", { reply: "once" })).toBe("applied")
    expect(await api.reply(shown?.id ?? "", { reply: "once" })).toBe("already")
    await expect.poll(() => followed.state.requests).toEqual([])
    await expect.poll(() => all).toContain("permission.replied")
    await first.post(`${path}/wait`)

    // A request that opens while the client follows.
    await first.post(`${path}/input`, { text: "question" })
    await expect.poll(() => followed.state.questions).toHaveLength(1)
    const [asked] = followed.state.questions
    expect(await api.questions.reply(asked?.id ?? "", [["left"]])).toBe("applied")
    await expect.poll(() => followed.state.questions).toEqual([])
  })

  test("do not show or answer requests of directories that they do not serve", async () => {
    const { first, path, request } = await start("write")
    const elsewhere = await setUp(script, { store: first.store })
    const all: unknown[] = []
    const controller = new AbortController()
    onTestFinished(() => controller.abort())
    void (async () => {
      for await (const event of readEvents(`${elsewhere.server.url}/event`, { signal: controller.signal }))
        if (typeof event === "object") all.push(event.data)
    })().catch(() => {})
    expect((await elsewhere.get("/request")).body.items).toEqual([])
    const unserved = await elsewhere.post(`/request/${request.id}/reply`, { reply: "once" })
    expect([unserved.status, unserved.body.error.code]).toEqual([404, "request.unknown"])
    expect((await first.post(`/request/${request.id}/reply`, { reply: "reject" })).status).toBe(200)
    await first.post(`${path}/wait`)
    expect((await elsewhere.post(`/request/${request.id}/reply`, { reply: "once" })).status).toBe(404)
    expect(all).toEqual([])
  })
}
