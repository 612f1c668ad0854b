import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import pg from "pg"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { Dispatcher, Job } from "../../src/scale/dispatcher.ts"
import { openPgBossDispatcher } from "../../src/scale/pg-boss.ts"
import { StoreError } from "../../src/store/store.ts"
import { errorMessage } from "../../src/util/errors.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { processScript } from "../process-scripts.ts"
import { testDispatcher } from "../suites/dispatcher.ts"

describePostgres("pg-boss", () => {
  let server: PostgresServer
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  async function place() {
    count += 1
    const schema = `jobs_${count}`
    const problems: string[] = []
    const opened: Dispatcher[] = []
    const children: { kill(): Promise<void> }[] = []
    const onProblem = (message: string, error: unknown) => problems.push(`${message}: ${errorMessage(error)}`)
    return {
      schema,
      problems,
      async open() {
        const dispatcher = await openPgBossDispatcher(server.url(), {
          schema,
          connections: 2,
          pollMs: 100,
          onProblem,
        })
        opened.push(dispatcher)
        return dispatcher
      },
      async takeInProcess() {
        const child = spawn(
          process.execPath,
          [processScript("test/scale/dispatch-process"), server.url(), schema],
          {
            stdio: ["ignore", "pipe", "inherit"],
          },
        )
        const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
        const kill = async () => {
          if (child.exitCode !== null || child.signalCode !== null) return
          child.kill("SIGKILL")
          await once(child, "exit")
        }
        children.push({ kill })
        expect((await lines.next()).value).toBe("ready")
        return { taken: lines.next().then(({ value }) => String(value)), kill }
      },
      async close() {
        for (const dispatcher of opened) await dispatcher.close()
        for (const { kill } of children) await kill()
      },
    }
  }

  testDispatcher("pg-boss", place)

  test("adds a job if the transaction of the caller commits, and only then", async () => {
    const queue = await place()
    const dispatcher = await queue.open()
    const client = new pg.Client(server.url())
    await client.connect()
    const keys: string[] = []
    await dispatcher.work({
      concurrency: 4,
      async handle({ key }) {
        keys.push(key)
        return undefined
      },
    })
    const add = (key: string) =>
      dispatcher.enqueue({ key, id: "1", reason: "input" }, async (text, values) => {
        return (await client.query(text, values && [...values])).rows
      })
    await client.query("BEGIN")
    await add("lost")
    await client.query("ROLLBACK")
    await client.query("BEGIN")
    await add("kept")
    expect(await dispatcher.stats()).toEqual({ waiting: 0, active: 0 })
    await client.query("COMMIT")
    await expect.poll(() => keys).toEqual(["kept"])
    await client.end()
    await queue.close()
  })

  test("keeps jobs while the server restarts, and continues afterwards", async () => {
    const queue = await place()
    const dispatcher = await queue.open()
    const keys: string[] = []
    await dispatcher.work({
      concurrency: 4,
      async handle({ key }) {
        keys.push(key)
        return undefined
      },
    })
    await dispatcher.enqueue({ key: "before", id: "1", reason: "input" })
    await expect.poll(() => keys).toEqual(["before"])
    await server.crash()
    await dispatcher.enqueue({ key: "after", id: "1", reason: "input" })
    await expect.poll(() => keys).toEqual(["before", "after"])
    await queue.close()
  })

  test("repeats a job that could not be put back", async () => {
    const queue = await place()
    const dispatcher = await queue.open()
    const client = new pg.Client(server.url())
    await client.connect()
    const { schema } = queue
    await client.query(
      `CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
    )
    let taken = 0
    await dispatcher.work({
      concurrency: 1,
      async handle() {
        taken += 1
        if (taken > 1) return undefined
        await client.query(
          `CREATE TRIGGER refuse BEFORE INSERT ON ${schema}.job FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse()`,
        )
        return { reason: "input", afterMs: 0 }
      },
    })
    await dispatcher.enqueue({ key: "a", id: "1", reason: "input" })
    await expect.poll(() => queue.problems.join()).toContain("refused")
    await client.query(`DROP TRIGGER refuse ON ${schema}.job`)
    await expect.poll(() => taken, { timeout: 20_000 }).toBe(2)
    await client.end()
    await queue.close()
  })

  test("lets a transaction end several jobs while the worker sends heartbeats", async () => {
    const queue = await place()
    const dispatcher = await queue.open()
    const jobs = new Map<string, Job>()
    const { promise: done, resolve: end } = Promise.withResolvers<void>()
    await dispatcher.work({
      concurrency: 2,
      async handle(job) {
        jobs.set(job.key, job)
        await done
        return undefined
      },
    })
    for (const key of ["a", "b"]) await dispatcher.enqueue({ key, id: "1", reason: "input" })
    await expect.poll(() => jobs.size).toBe(2)
    const client = new pg.Client(server.url())
    await client.connect()
    const query = async (text: string, values?: readonly unknown[]) =>
      (await client.query(text, values && [...values])).rows
    const deadlocks = async () =>
      Number((await query("SELECT sum(deadlocks) AS count FROM pg_stat_database"))[0].count)
    const before = await deadlocks()
    await query("BEGIN")
    await jobs.get("b")?.endIn?.(query)
    // Longer than the interval of heartbeats.
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    await jobs.get("a")?.endIn?.(query)
    await query("COMMIT")
    end()
    // PostgreSQL detects a deadlock after a second, and counts it a second later.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(await deadlocks()).toBe(before)
    expect(queue.problems).toEqual([])
    await client.end()
    await queue.close()
  }, 20_000)

  test("continues when a connection is lost while the pool passes it to the next statement", async () => {
    const queue = await place()
    const dispatcher = await queue.open()
    const client = new pg.Client(server.url())
    await client.connect()
    await client.query(`BEGIN; LOCK TABLE ${queue.schema}.job`)
    const stats = Promise.all([dispatcher.stats(), dispatcher.stats()])
    const enqueued = dispatcher.enqueue({ key: "a", id: "1", reason: "input" })
    await new Promise((resolve) => setTimeout(resolve, 50))
    void client.query("COMMIT")
    await new Promise((resolve) => setImmediate(resolve))
    // Afterwards, this process reads the result of the first statement and the end of the connection together.
    server.executeSync("SELECT pg_sleep(0.2)")
    server.executeSync(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tackle-jobs'",
    )
    expect(await stats).toContainEqual({ waiting: 0, active: 0 })
    await enqueued
    expect(await dispatcher.stats()).toEqual({ waiting: 1, active: 0 })
    await client.end()
    await queue.close()
  })

  test("names the database if it cannot be reached", async () => {
    const opening = openPgBossDispatcher("postgres://tackle@/none?host=/nowhere", { onProblem() {} })
    const error = await opening.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreError)
    expect(errorMessage(error)).toContain(
      "The database none on /nowhere (schema tackle_jobs) cannot be reached",
    )
  })
})
