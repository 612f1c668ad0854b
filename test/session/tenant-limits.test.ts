import { afterAll, beforeAll, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createRunSlots } from "../../src/session/run-slots.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Store } from "../../src/store/store.ts"
import type { TenantLimits } from "../../src/store/tenants.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

const answer = { text: "done", usage: { input: 60, output: 40 } }

test("stops a run when the tokens of the day are used, and refuses further inputs", async () => {
  await using engine = await startEngine(
    [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }], usage: answer.usage }, answer, answer],
    { files: { "a.txt": "a" }, tenants: { acme: { tokensPerDay: 100 } } },
  )
  const { tackle } = engine
  const session = await tackle.sessions.create({ tenant: "acme" })
  const { end } = await run(engine, { session })
  expect(end.status).toBe("limit")
  expect(engine.server.requests).toHaveLength(2)
  const error = await session.send("more").catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: "tenant.tokens" })
  expect(String(error)).toMatch(
    /acme has used all 100 of today.s tokens.*00:00 UTC.*tenants\.acme\.tokensPerDay/,
  )
  expect((await run(engine, { session })).end.status).toBe("failed")
  // Other tenants and sessions without a tenant are not limited.
  const other = await tackle.sessions.create({ tenant: "other" })
  expect((await run(engine, { session: other })).end.status).toBe("completed")
})

test("counts subagents and forks, and forgets the tenant of an archive", async () => {
  await using engine = await startEngine(
    ({ body: { messages } }) =>
      JSON.stringify(messages).includes("do it") || messages.length > 3
        ? answer
        : {
            calls: [
              { name: "task", arguments: { description: "d", prompt: "do it", subagent_type: "general" } },
            ],
          },
    { tenants: { "*": { costPerDay: 1, tokensPerDay: 1_000_000 } }, permission: { "*": "allow" } },
  )
  const { tackle } = engine
  const session = await tackle.sessions.create({ tenant: "acme" })
  const { end } = await run(engine, { session })
  // The model has no prices, so its cost cannot be limited.
  expect(end).toMatchObject({ status: "failed", exitCode: 2 })
  const fork = await tackle.sessions.fork(session.id)
  expect(fork?.info().tenant).toBe("acme")
  const archive = await tackle.sessions.export(session.id)
  expect((await tackle.sessions.import(archive, { copy: true })).info().tenant).toBeUndefined()
  expect((await tackle.sessions.import(archive, { copy: true, tenant: "b" })).info().tenant).toBe("b")
})

test("refuses an input if too many wait", async () => {
  const gate = Promise.withResolvers<void>()
  await using engine = await startEngine(
    async () => {
      await gate.promise
      return answer
    },
    { tenants: { acme: { queued: 2 } } },
  )
  const session = await engine.tackle.sessions.create({ tenant: "acme" })
  await session.send("first")
  await expect.poll(async () => (await session.inputs.list()).length).toBe(0)
  await session.send("second", { delivery: "queue" })
  const third = await session.send("third", { delivery: "queue", id: "third" })
  await expect(session.send("fourth")).rejects.toMatchObject({ code: "tenant.queue", retryAfterSeconds: 5 })
  // A client that did not receive the answer sends the input again.
  expect(await session.send("third", { delivery: "queue", id: "third" })).toEqual(third)
  gate.resolve()
  await session.wait()
  expect((await session.send("fifth")).state).toBe("pending")
})

test("shares slots between runs, and lets the tenants take turns", async () => {
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  await using engine = await startEngine(
    async ({ body: { messages } }) => {
      order.push(JSON.stringify(messages.at(-1)).match(/run-(\w+)/)?.[1] ?? "")
      await gate.promise
      return answer
    },
    { runSlots: createRunSlots(1) },
  )
  const { tackle } = engine
  const send = async (name: string, tenant: string) => {
    const session = await tackle.sessions.create({ tenant })
    await session.send(`run-${name}`)
    return session
  }
  const sessions = [await send("a1", "a")]
  await expect.poll(() => order).toEqual(["a1"])
  for (const [name, tenant] of [
    ["a2", "a"],
    ["a3", "a"],
    ["b1", "b"],
    ["a4", "a"],
    ["c1", "c"],
  ] as const)
    sessions.push(await send(name, tenant))
  // A session that waits for its turn can be stopped. Its input stays in the queue.
  const stopped = await send("a5", "a")
  await expect.poll(() => tackle.sessions.status(stopped.id)).toBe("running")
  await stopped.interrupt()
  expect((await stopped.inputs.list()).map(({ text }) => text)).toEqual(["run-a5"])
  gate.resolve()
  await Promise.all(sessions.map((session) => session.wait()))
  expect(order).toEqual(["a1", "b1", "c1", "a2", "a3", "a4"])
})

/** Lets two engines on their own stores run three sessions of a tenant that may run one at once. */
async function runInTurn(open: () => Promise<Store>): Promise<void> {
  const project = await temporaryProject({})
  let active = 0
  let most = 0
  const server = await startModelServer({
    script: async () => {
      active += 1
      most = Math.max(most, active)
      await new Promise((resolve) => setTimeout(resolve, 100))
      active -= 1
      return answer
    },
  })
  const limits: TenantLimits = { sessions: 1 }
  const stores = [await open(), await open()]
  const engines = await Promise.all(
    stores.map((store, index) =>
      createTackle({
        directory: project.directory,
        dataDirectory: project.path(`.data${index}`),
        store,
        model: "test/m",
        providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
        tenants: { acme: limits },
      }),
    ),
  )
  try {
    const sessions = await Promise.all(
      [0, 1, 0].map((index) => engines[index]?.sessions.create({ tenant: "acme" })),
    )
    for (const session of sessions) await session?.send("go")
    const ends = await Promise.all(sessions.map((session) => session?.wait()))
    expect(ends.map((end) => end?.status)).toEqual(["completed", "completed", "completed"])
    expect(most).toBe(1)
  } finally {
    for (const engine of engines) await engine.close()
    for (const store of stores) await store.close()
    await server.close()
    await project.remove()
  }
}

test("limits the running sessions of a tenant over two engines on one SQLite file", async () => {
  const project = await temporaryProject({})
  await runInTurn(() => openSqliteStore(project.path("tackle.db")))
  await project.remove()
})

describePostgres("tenants in PostgreSQL", () => {
  let postgres: PostgresServer
  beforeAll(async () => {
    postgres = await startPostgres()
    await migratePostgres(postgres.url())
  })
  afterAll(() => postgres.stop())

  test("limits the running sessions of a tenant over two engines", () =>
    runInTurn(() => openPostgresStore(postgres.url())))
})
