import pg from "pg"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { openPgBossDispatcher } from "../../src/scale/pg-boss.ts"
import { startWorker } from "../../src/scale/worker.ts"
import { createRunSlots, type RunSlots } from "../../src/session/run-slots.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, startPostgres } from "../postgres.ts"

/** Starts an engine that accepts inputs, and a worker with its own store, on a new server. */
async function startCluster(disposer: AsyncDisposableStack, runSlots?: RunSlots) {
  const postgres = await startPostgres()
  disposer.defer(() => postgres.stop())
  await migratePostgres(postgres.url())
  const project = await temporaryProject({ "a.txt": "a" })
  disposer.defer(() => project.remove())
  const model = await startModelServer({
    script: ({ body: { messages } }) => {
      const results = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
      if (results.length === 0) return { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] }
      if (results.length === 2)
        return { calls: [{ name: "bash", arguments: { command: "echo x >> effects.txt" } }] }
      return { text: "done" }
    },
  })
  disposer.defer(() => model.close())
  const problems: string[] = []
  const onProblem = (message: string, error: unknown) => problems.push(`${message}: ${error}`)
  const openStore = async () => {
    const store = await openPostgresStore(postgres.url())
    disposer.defer(() => store.close())
    return store
  }
  const openQueue = () => openPgBossDispatcher(postgres.url(), { onProblem })
  const [served, store, queue] = [await openStore(), await openStore(), await openQueue()]
  disposer.defer(() => queue.close())
  const options = {
    ...{ directory: project.directory, model: "test/m", sandbox: "off" as const },
    providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow" as const },
  }
  const server = await createTackle({
    ...{ ...options, store: served, dataDirectory: project.path(".server") },
    dispatch: queue.enqueue,
  })
  disposer.defer(() => server.close())
  const worker = await startWorker({
    ...{ store, dispatcher: await openQueue(), roots: [project.directory], concurrency: 4, onProblem },
    openEngine: () =>
      createTackle({
        ...{ ...options, store, dataDirectory: project.path(".worker"), isWorker: true },
        runSlots,
      }),
  })
  disposer.defer(() => worker.close())
  const client = new pg.Client(postgres.url())
  await client.connect()
  disposer.defer(() => client.end())
  return { server, project, problems, client, store }
}

describePostgres("a worker", () => {
  test("needs 8 transactions for a turn with a harmless call, a command and an answer", async () => {
    await using disposer = new AsyncDisposableStack()
    const { server, project, problems, client } = await startCluster(disposer)
    const transactions = async () =>
      Number((await client.query("SELECT txid_current() AS id")).rows[0].id) as number
    const session = await server.sessions.create()
    const counts: number[] = []
    for (let turn = 1; turn <= 6; turn += 1) {
      const before = await transactions()
      await session.send(`turn ${turn}`)
      await session.wait()
      counts.push((await transactions()) - before - 1)
    }
    // Renewals of leases and jobs are transactions, too. The first turn opens the engine.
    expect(Math.min(...counts)).toBeLessThanOrEqual(8)
    expect(await project.read("effects.txt")).toBe("x\n".repeat(6))
    expect(problems).toEqual([])
  })

  test("is stopped by an interrupt that comes after it took a job and before the run starts", async () => {
    await using disposer = new AsyncDisposableStack()
    const slots = createRunSlots(1)
    const { server, project, problems, client } = await startCluster(disposer, slots)
    const session = await server.sessions.create()
    await session.send("open the engine")
    await session.wait()
    const free = await slots.acquire(undefined, new AbortController().signal)
    await session.send("stop this")
    const isLeased = async () => (await client.query("SELECT FROM tackle.leases")).rowCount === 1
    await expect.poll(isLeased, { timeout: 10_000 }).toBe(true)
    const interrupted = session.interrupt({ clear: true })
    const isAsked = async () =>
      (await client.query("SELECT FROM tackle.leases WHERE stop_epoch = epoch")).rowCount === 1
    await expect.poll(isAsked, { timeout: 10_000 }).toBe(true)
    free()
    await interrupted
    expect(await project.read("effects.txt")).toBe("x\n")
    expect(problems).toEqual([])
  })
})
