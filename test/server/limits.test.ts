import { mkdir } from "node:fs/promises"
import { expect, test } from "vitest"
import { readEvents, setUp, tokens } from "./start-server.ts"

test("limits the requests of one token at once, including streams", async () => {
  const { server, get, session } = await setUp([], { maxRequests: 2 })
  const path = await session()
  const streams = [1, 2].map(() => readEvents(`${server.url}${path}/event`))
  await Promise.all(streams.map((stream) => stream.next()))
  const refused = await get(path, { scope: "read" })
  expect([refused.status, refused.body.error.code, refused.headers.get("retry-after")]).toEqual([
    429,
    "token.busy",
    "1",
  ])
  expect((await get(path, { scope: "run" })).status).toBe(200)
  await Promise.all(streams.map((stream) => stream.return(undefined)))
  await expect.poll(async () => (await get(path, { scope: "read" })).status).toBe(200)
})

test("limits the sessions that run at once, but not the inputs of a running session", async () => {
  const gate = Promise.withResolvers<void>()
  const { get, post, session } = await setUp(
    async () => {
      await gate.promise
      return { text: "Hello." }
    },
    { maxRunning: 1 },
  )
  const [first, second] = [await session(), await session()]
  await post(`${first}/input`, { text: "Hi" })
  await expect.poll(async () => (await get(`${first}/message`)).body.items.length).toBeGreaterThan(0)
  const refused = await post(`${second}/input`, { text: "Hi" })
  expect([refused.status, refused.body.error.code]).toEqual([503, "server.busy"])
  expect((await post(`${first}/input`, { text: "More" })).status).toBe(202)
  gate.resolve()
  await post(`${first}/wait`)
  expect((await post(`${second}/input`, { text: "Hi" })).status).toBe(202)
})

test("limits the open engines, and closes an idle one for another directory", async () => {
  const { server, post, get, project, directory } = await setUp([], { maxEngines: 1 })
  await mkdir(project.path("a"))
  await mkdir(project.path("b"))
  const { body: a } = await post("/session", { directory: `${directory}/a` })
  const stream = readEvents(`${server.url}/session/${a.id}/event`, { token: tokens.read })
  await stream.next()
  const refused = await post("/session", { directory: `${directory}/b` })
  expect([refused.status, refused.body.error.code]).toEqual([503, "server.busy"])
  await stream.return(undefined)
  await expect.poll(async () => (await post("/session", { directory: `${directory}/b` })).status).toBe(201)
  expect((await get(`/session/${a.id}`)).body.status).toBe("idle")
})

test("closes an engine that is not used, and opens it again", async () => {
  const { post, get, session, problems } = await setUp(() => ({ text: "Hello." }), { idleMs: 10 })
  const path = await session()
  for (const text of ["One", "Two", "Three"]) {
    await post(`${path}/input`, { text })
    await expect
      .poll(async () => (await get(`${path}/message`)).body.items.at(-1)?.message.time.completed)
      .toBeDefined()
    await expect.poll(async () => (await get(path)).body.status).toBe("idle")
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  expect((await get(`${path}/message`)).body.items).toHaveLength(6)
  expect(problems).toEqual([])
})
