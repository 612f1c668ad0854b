import pg from "pg"
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import { migratePostgres, openPostgresStore, type PostgresStoreOptions } from "../../src/store/postgres.ts"
import { openPostgresConnection } from "../../src/store/postgres-connection.ts"
import { postgresMigrations } from "../../src/store/postgres-migrations.ts"
import { type Lease, type Store, StoreError, type TransactionQuery } from "../../src/store/store.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { testControl } from "../suites/control.ts"
import { type LeasePlace, testLeases } from "../suites/leases.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { testStore } from "../suites/store.ts"

describePostgres("PostgreSQL", () => {
  let server: PostgresServer
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  /** Returns the name of a new schema with tables. */
  async function newSchema(): Promise<string> {
    count += 1
    const schema = `test_${count}`
    await migratePostgres(server.url(), { schema })
    return schema
  }

  const open = (schema: string, options: PostgresStoreOptions = {}) =>
    openPostgresStore(server.url(), { schema, connections: 3, ...options })

  async function execute(sql: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client(server.url())
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }

  async function failure(work: Promise<unknown>): Promise<string> {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!(error instanceof StoreError)) throw new Error("expected a StoreError", { cause: error })
    return error.message
  }

  testStore("postgres", async () => open(await newSchema()))

  test("leases sessions and claims their inputs in the transaction of the caller", async () => {
    const schema = await newSchema()
    const [store, other] = [await open(schema), await open(schema)]
    const client = new pg.Client(server.url())
    await client.connect()
    const query: TransactionQuery = async (text, values) =>
      (await client.query(text, values && [...values])).rows
    const holder = { id: "eng_1", pid: process.pid }
    const input = (id: string, sessionID: string): Input => ({
      ...{ id, sessionID, seq: 0, position: 1, text: id, digest: id },
      ...{ delivery: "queue", state: "pending", time: { created: 1 } },
    })
    for (const id of ["ses_1", "ses_2", "ses_3"])
      await store.commit([{ kind: "session", session: aSession(id) }])
    for (const id of ["ses_1", "ses_3"])
      await store.updateInputs(id, undefined, () => [input(`inp_${id}`, id)])
    await other.lease("ses_3", { id: "eng_2", pid: process.pid })
    const reserving = {
      sessionIDs: ["ses_1", "ses_2", "ses_3"],
      holderOf: () => holder,
      inputsOf: (_: string, pending: readonly Input[]) => pending,
    }

    await client.query("BEGIN")
    await store.reserve?.(reserving, query)
    await client.query("ROLLBACK")
    expect(await other.holder("ses_1")).toBeUndefined()
    expect((await other.inputs("ses_1"))[0]?.claimedBy).toBeUndefined()

    await client.query("BEGIN")
    const confirm = await store.reserve?.(reserving, query)
    await client.query("COMMIT")
    const reserved = confirm?.() ?? []
    // The second session has no input, and the third another holder.
    expect(reserved.map(({ session }) => session.id)).toEqual(["ses_1"])
    expect((await other.holder("ses_1"))?.id).toBe("eng_1")
    expect((await other.inputs("ses_1"))[0]?.claimedBy).toBe("eng_1")
    const taken = await store.lease("ses_1", holder)
    if (!taken.isHeld) throw new Error("The session is leased to another engine.")
    await reserved[0]?.release()
    await store.commit([{ kind: "session", session: aSession("ses_1") }], { lease: taken.lease })
    await store.release(taken.lease)

    await client.query("BEGIN")
    const unused = await store.reserve?.(reserving, query)
    await client.query("COMMIT")
    for (const { release } of unused?.() ?? []) await release()
    expect(await other.holder("ses_1")).toBeUndefined()

    await client.query("BEGIN")
    const late = store.reserve?.(
      {
        ...reserving,
        // Another process changes the session after it was read.
        inputsOf(_, pending) {
          void other.commit([{ kind: "session", session: { ...aSession("ses_1"), title: "new" } }])
          return pending
        },
      },
      async (text, values) => {
        if (text.includes("commit_shared"))
          await expect.poll(async () => (await other.session("ses_1"))?.title).toBe("new")
        return query(text, values)
      },
    )
    await expect(late).rejects.toThrow()
    await client.query("ROLLBACK")
    expect(await other.holder("ses_1")).toBeUndefined()
    for (const each of [store, other]) await each.close()
    await client.end()
  })

  test("stores a noted content with the next commit, or soon", async () => {
    const store = await open(await newSchema())
    const contents = store.contents?.({ fileBytes: 100, totalBytes: 1000, days: 1 })
    const text = (value: string) => new TextEncoder().encode(value)
    const hash = await contents?.note?.(text("with a commit"))
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    expect(await contents?.get(hash ?? "")).toEqual(Buffer.from("with a commit"))
    const alone = await contents?.note?.(text("alone"))
    expect(await contents?.get(alone ?? "")).toEqual(Buffer.from("alone"))
    expect(await contents?.note?.(new Uint8Array(101))).toBeUndefined()
    await store.close()
  })

  test("keeps at most 4 MB of noted contents in memory", async () => {
    const schema = await newSchema()
    const store = await open(schema)
    const fileBytes = 1024 * 1024
    const contents = store.contents?.({ fileBytes, totalBytes: 1e9, days: 1 })
    // On a busy machine, the timer that stores what is noted could otherwise run between the notes.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    onTestFinished(() => void vi.useRealTimers())
    const hashes = await Promise.all(
      Array.from({ length: 12 }, (_, index) => contents?.note?.(new Uint8Array(fileBytes).fill(index))),
    )
    const [stored] = await execute(`SELECT count(*)::int AS count FROM ${schema}.contents`)
    expect(stored?.count).toBeGreaterThanOrEqual(8)
    for (const hash of hashes) expect((await contents?.get(hash ?? ""))?.length).toBe(fileBytes)
    await store.close()
  })

  test("delivers texts to receivers that were added while the store connected", async () => {
    const schema = await newSchema()
    const store = await open(schema)
    const { mail } = store
    if (!mail) throw new Error("the store has no mail")
    const received = new Set<string>()
    store.watch(() => {})
    const names: string[] = []
    for (let isConnected = false; !isConnected; ) {
      const name = `receiver_${names.length}`
      names.push(name)
      mail.listen(
        name,
        (text) => received.add(text),
        () => {
          isConnected = true
        },
      )
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await expect
      .poll(async () => {
        for (const name of names) await mail.send(name, [name])
        return [...received].sort()
      })
      .toEqual(names.toSorted())
    await store.close()
  })

  test("delivers texts also with the longest name of a schema", async () => {
    const schema = `long_${"x".repeat(35)}`
    await migratePostgres(server.url(), { schema })
    const { mail, close } = await open(schema)
    const received: string[] = []
    const { promise: connected, resolve } = Promise.withResolvers<void>()
    mail?.listen("eng_0mwvavkd9004yu9bqo29x8", (text) => received.push(text), resolve)
    await connected
    await mail?.send("eng_0mwvavkd9004yu9bqo29x8", ["hello"])
    await expect.poll(() => received).toEqual(["hello"])
    await close()
  })

  test("keeps the answer of a request that is stored again after a lost connection", async () => {
    const store = await open(await newSchema())
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    const taken = await store.lease("ses_1", { id: "eng_1", pid: process.pid })
    if (!taken.isHeld) throw new Error("the session is leased")
    const { lease } = taken
    const asked = {
      ...{ type: "question", id: "que_1", sessionID: "ses_1", questions: [], tool: undefined },
    } as never
    const request = { asked, holder: "eng_1", epoch: lease.epoch, time: { created: 1 } }
    await store.openRequest(request, lease)
    const answer = { type: "question", id: "ans_1", answers: [["yes"]] } as const
    await store.answerRequest("que_1", answer as never)
    await store.openRequest(request, lease)
    expect((await store.request("que_1"))?.answer).toEqual(answer)
    await store.close()
  })

  testLeases("postgres", openPlace)
  testControl("postgres", openPlace)

  async function openPlace(): Promise<LeasePlace> {
    const schema = await newSchema()
    // Renewed so rarely that only `stop` lets a lease expire.
    const stores = [
      await open(schema, { leaseMs: 600_000 }),
      await open(schema, { leaseMs: 600_000 }),
      await open(schema, { leaseMs: 600_000 }),
    ] as const
    const client = new pg.Client(server.url())
    await client.connect()
    return {
      stores,
      async stop({ id }) {
        await client.query(`UPDATE ${schema}.leases SET expires_at = now() WHERE holder_id = $1`, [id])
      },
      start() {},
      async close() {
        await client.end()
        for (const store of stores) await store.close()
      },
    }
  }

  describe("migrations", () => {
    test("are needed before the store opens, and do nothing the second time", async () => {
      const schema = "migrated"
      expect(await failure(open(schema))).toMatch(
        /Tackle's tables in .* are missing\. Run `tackle db migrate/,
      )
      const results = await Promise.all([1, 2, 3].map(() => migratePostgres(server.url(), { schema })))
      const after = postgresMigrations.length
      expect(results.map(({ before }) => before).sort()).toEqual([0, after, after])
      expect(await migratePostgres(server.url(), { schema })).toEqual({ before: after, after })
      await (await open(schema)).close()
    })

    test("refuse tables of the version before, and say how to migrate them", async () => {
      const schema = await newSchema()
      await execute(`UPDATE ${schema}.version SET version = ${postgresMigrations.length - 1}`)
      expect(await failure(open(schema))).toMatch(/tables .*are too old.*`tackle db migrate/)
    })

    test("work beside a process of the version before, which is already running", async () => {
      const schema = await newSchema()
      const store = await open(schema)
      await store.commit([{ kind: "session", session: aSession("ses_1") }])
      const holder = { id: "eng_old", pid: process.pid, isWorker: true }
      // The statements of that version.
      const take = `SELECT taken FROM ${schema}.take_lease('ses_1', 'eng_old', '${JSON.stringify(holder)}', '3 seconds', NULL)`
      const commit = (epoch: unknown, text: string) =>
        execute(
          `SELECT ${schema}.commit_changes('{ses_1}', '{2}', '{${epoch}}', '{NULL}', '{1,1}', '{message,part}',
             '{msg_1,prt_1}', '{NULL,msg_1}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}',
             ARRAY['${JSON.stringify(aMessage("msg_1", "ses_1"))}', '${JSON.stringify(aPart("prt_1", "msg_1", "ses_1", text))}'],
             '${schema}_changes')`,
        )
      const epoch = (await execute(take))[0]?.taken
      await commit(epoch, "by the old process")
      expect((await store.messages("ses_1"))[0]?.parts).toMatchObject([{ text: "by the old process" }])
      const other = { id: "eng_new", pid: process.pid }
      expect(await store.lease("ses_1", other)).toMatchObject({ isHeld: false, holder: { id: "eng_old" } })
      await execute(`SELECT ${schema}.end_lease('ses_1', ${epoch})`)

      expect(await store.lease("ses_1", other)).toMatchObject({ isHeld: true })
      await expect(commit(epoch, "too late")).rejects.toThrow("the lease of ses_1 has ended")
      expect((await execute(take))[0]?.taken).toBeNull()
      await store.close()
    })

    test("refuse tables of a newer program, and change nothing", async () => {
      const schema = await newSchema()
      await execute(`UPDATE ${schema}.version SET version = 999`)
      for (const work of [() => open(schema), () => migratePostgres(server.url(), { schema })])
        expect(await failure(work())).toMatch(/version 999.*Update Tackle/)
      expect(await execute(`SELECT version FROM ${schema}.version`)).toEqual([{ version: 999 }])
    })

    test("refuse the schema of another program", async () => {
      await execute("CREATE SCHEMA foreign_program; CREATE TABLE foreign_program.cookies (id int)")
      expect(await failure(migratePostgres(server.url(), { schema: "foreign_program" }))).toContain(
        "another program",
      )
    })
  })

  describe("an unusable server is reported with the next step", () => {
    test("unreachable", async () => {
      const message = await failure(openPostgresStore("postgres://me:hidden@127.0.0.1:1/tackle"))
      expect(message).toMatch(/tackle on 127\.0\.0\.1:1.*cannot be reached.*Check that the server is running/)
      expect(message).not.toContain("hidden")
    })

    test("wrong password, missing database, missing rights", async () => {
      await execute("CREATE ROLE guest LOGIN PASSWORD 'secret'")
      const schema = await newSchema()
      const guest = (password: string) => server.url("postgres", `guest:${password}`)
      expect(await failure(openPostgresStore(guest("wrong"), { schema }))).toMatch(
        /rejects the login.*PGPASSWORD/,
      )
      expect(await failure(openPostgresStore(guest("secret"), { schema }))).toMatch(
        /denies access.*docs\/scale\.md/,
      )
      expect(await failure(openPostgresStore(server.url("nowhere")))).toMatch(/does not exist.*createdb/)
    })

    test("an invalid URL or schema", async () => {
      expect(await failure(openPostgresStore("mysql://me:hidden@host/db"))).not.toContain("hidden")
      expect(await failure(openPostgresStore(server.url(), { schema: 'a"b' }))).toContain("schema name")
    })

    test("a closed store", async () => {
      const store = await open(await newSchema())
      await store.close()
      expect(await failure(store.commit([{ kind: "session", session: aSession("ses_1") }]))).toContain(
        "closed",
      )
    })
  })

  describe("several processes", () => {
    const begin = (store: Store, id = "ses_1") =>
      store.commit([
        { kind: "session", session: aSession(id) },
        { kind: "message", message: aMessage("msg_1", id) },
      ])

    test("number the changes of one session without gaps", async () => {
      const schema = await newSchema()
      const stores = await Promise.all([1, 2, 3].map(() => open(schema)))
      const [first] = stores
      if (!first) return
      await begin(first)
      const writes = stores.flatMap((store, by) =>
        Array.from({ length: 30 }, (_, index) =>
          store.commit([{ kind: "part", part: aPart(`prt_${by}_${index}`, "msg_1", "ses_1") }]),
        ),
      )
      const sequences = (await Promise.all(writes)).flat().sort((a, b) => a - b)
      expect(sequences).toEqual(Array.from({ length: 90 }, (_, index) => index + 3))
      expect((await first.messages("ses_1"))[0]?.parts).toHaveLength(90)
      for (const store of stores) await store.close()
    })

    test("store inputs and further statements together, or neither", async () => {
      const schema = await newSchema()
      const [one, other] = [await open(schema), await open(schema)]
      await begin(one)
      await execute(`CREATE TABLE ${schema}.jobs (id text PRIMARY KEY)`)
      const admit = (id: string, also: (query?: TransactionQuery) => Promise<void>) =>
        one.updateInputs(
          "ses_1",
          id,
          ({ named }) => [
            named ?? {
              ...{ id, sessionID: "ses_1", seq: 0, position: 1, time: { created: 1 } },
              ...{ text: id, digest: id, delivery: "queue", state: "pending" },
            },
          ],
          { also },
        )
      const insert = (id: string) => async (query?: TransactionQuery) =>
        void (await query?.(`INSERT INTO ${schema}.jobs VALUES ($1)`, [id]))
      const stored = async () => [
        (await one.inputs("ses_1")).map(({ id }) => id),
        (await execute(`SELECT id FROM ${schema}.jobs ORDER BY id`)).map(({ id }) => id),
      ]

      await admit("first", insert("first"))
      expect(await stored()).toEqual([["first"], ["first"]])
      await expect(admit("second", insert("first"))).rejects.toThrow("duplicate key")
      const failing = admit("second", async (query) => {
        await insert("second")(query)
        throw new Error("no")
      })
      await expect(failing).rejects.toThrow("no")
      expect(await stored()).toEqual([["first"], ["first"]])

      // A process that is stopped in the transaction loses it, so that others can write the session.
      let stops = 1
      const stopped = admit("third", async (query) => {
        if (stops-- > 0) await new Promise((resolve) => setTimeout(resolve, 2500))
        await insert("third")(query)
      })
      await new Promise((resolve) => setTimeout(resolve, 200))
      await other.commit([{ kind: "part", part: aPart("prt_other", "msg_1", "ses_1") }])
      await stopped
      expect(await stored()).toEqual([
        ["first", "third"],
        ["first", "third"],
      ])
      await one.close()
      await other.close()
    })

    test("leave the session of a worker to other workers, unless it was asked to stop", async () => {
      const schema = await newSchema()
      const store = await open(schema, { leaseMs: 600_000 })
      await begin(store)
      const settled: string[] = []
      const recover = () =>
        store.recover((history) => {
          settled.push(...history.map(({ message }) => message.id))
          return []
        })
      const take = async (id: string) => {
        const taken = await store.lease("ses_1", { id, pid: 1, isWorker: true })
        if (!taken.isHeld) throw new Error("the session is held")
        return taken.lease
      }
      const first = await take("eng_1")
      expect(await store.abandoned?.()).toEqual([])
      await store.release(first, { passesOn: true })
      expect(await store.holder("ses_1")).toBeUndefined()
      expect(await store.abandoned?.("ses_1")).toEqual([
        { sessionID: "ses_1", epoch: first.epoch, expired: expect.any(Number) },
      ])
      expect(await store.abandoned?.("ses_2")).toEqual([])
      await recover()
      expect(settled).toEqual([])

      const second = await take("eng_2")
      expect(await store.abandoned?.()).toEqual([])
      await store.stop("ses_1")
      await store.release(second, { passesOn: true })
      expect(await store.abandoned?.()).toEqual([])
      await recover()
      expect(settled).toEqual(["msg_1"])

      // Without a worker, any start recovers the session in the end.
      await store.release(await take("eng_3"), { passesOn: true })
      await execute(`UPDATE ${schema}.leases SET expires_at = expires_at - interval '2 hours'`)
      await recover()
      expect(settled).toEqual(["msg_1", "msg_1"])
      await store.close()
    })

    test("update the inputs of one session one after the other", async () => {
      const schema = await newSchema()
      const stores = await Promise.all([1, 2, 3].map(() => open(schema)))
      const [first] = stores
      if (!first) return
      await begin(first)
      const admit = (store: Store, id: string) =>
        store.updateInputs("ses_1", undefined, ({ pending }) => [
          {
            ...{ id, sessionID: "ses_1", seq: 0, position: pending.length + 1, time: { created: 1 } },
            ...{ text: id, digest: id, delivery: "queue", state: "pending" },
          },
        ])
      await Promise.all(
        stores.flatMap((store, by) =>
          Array.from({ length: 8 }, (_, index) => admit(store, `inp_${by}_${index}`)),
        ),
      )
      const positions = (await first.inputs("ses_1")).map(({ position }) => position)
      expect(positions).toEqual(Array.from({ length: 24 }, (_, index) => index + 1))
      for (const store of stores) await store.close()
    })

    test("share transactions for the leases, changes and contents of their sessions", async () => {
      const schema = await newSchema()
      const store = await open(schema)
      const ids = Array.from({ length: 30 }, (_, index) => `ses_${index}`)
      const contents = store.contents?.({ fileBytes: 1000, totalBytes: 1e6, days: 1 })
      await Promise.all(ids.map((id) => begin(store, id)))
      const transactions = async () => Number((await execute("SELECT txid_current() AS id"))[0]?.id)

      const before = await transactions()
      const leases = await Promise.all(
        ids.map(async (id) => {
          const taken = await store.lease(id, { id: "eng_1", pid: 1 })
          if (!taken.isHeld) throw new Error(`${id} is held`)
          return taken.lease
        }),
      )
      expect(new Set(leases.map(({ epoch }) => epoch)).size).toBe(30)
      await Promise.all(
        leases.map((lease) => {
          const { sessionID } = lease
          return store.commit([{ kind: "part", part: aPart("prt_1", "msg_1", sessionID) }], { lease })
        }),
      )
      // Two sessions may store the same content at the same time.
      const texts = ids.map((_, index) => Buffer.from(`text ${index % 20}`))
      const hashes = await Promise.all(texts.map((text) => contents?.put(text)))
      await Promise.all(leases.map((lease) => store.release(lease)))
      // One by one, these would be 110.
      expect((await transactions()) - before).toBeLessThan(20)

      for (const [index, hash] of hashes.entries())
        expect(Buffer.from((await contents?.get(hash ?? "")) ?? [])).toEqual(texts[index])
      expect(await Promise.all(ids.map((id) => store.holder(id)))).toEqual(ids.map(() => undefined))
      await expect(store.lease("ses_unknown", { id: "eng_1", pid: 1 })).rejects.toThrow("does not exist")
      await store.close()
    })

    test("do not wait for each other when they write the same sessions in another order", async () => {
      const schema = await newSchema()
      const stores = await Promise.all([1, 2, 3].map(() => open(schema)))
      const [first] = stores
      if (!first) return
      const ids = Array.from({ length: 60 }, (_, index) => `ses_${index}`)
      for (const id of ids) await begin(first, id)
      const deadlocks = async () => {
        const [row] = await execute("SELECT sum(deadlocks) AS count FROM pg_stat_database")
        return Number(row?.count)
      }
      const before = await deadlocks()
      await Promise.all(
        stores.flatMap((store, by) =>
          (by === 0 ? ids : ids.toReversed()).map(async (id) => {
            for (let index = 0; index < 20; index += 1)
              await store.commit([{ kind: "part", part: aPart(`prt_${by}_${index}`, "msg_1", id) }])
          }),
        ),
      )
      for (const id of ids) expect(await first.sequence(id)).toBe(2 + 60)
      // The server counts when a connection is closed.
      for (const store of stores) await store.close()
      const left = () => execute("SELECT FROM pg_stat_activity WHERE application_name = 'tackle'")
      await expect.poll(async () => (await left()).length).toBe(0)
      expect(await deadlocks()).toBe(before)
    })

    test("see each other's changes, also those during a lost connection, and not their own", async () => {
      const schema = await newSchema()
      const [one, two] = [await open(schema), await open(schema)]
      await begin(one)
      const seen: (string[] | undefined)[] = []
      const end = two.watch((changed) => seen.push(changed && [...changed]))
      // The first call follows LISTEN.
      await expect.poll(() => seen.length).toBe(1)
      await begin(two, "ses_2")
      await begin(one, "ses_3")
      await expect.poll(() => seen).toEqual([undefined, ["ses_3"]])
      await server.crash()
      await begin(one, "ses_4")
      await expect.poll(() => seen.slice(2)).toContain(undefined)
      await begin(one, "ses_5")
      await expect.poll(() => seen.at(-1)).toEqual(["ses_5"])
      end()
      expect((await two.sessions()).map(({ id }) => id)).toContain("ses_4")
      for (const store of [one, two]) await store.close()
    })

    test("continue after a crash of the server, without losing or repeating a number", async () => {
      const store = await open(await newSchema())
      await begin(store)
      const crash = server.crash()
      const sequences: number[] = []
      for (let index = 0; index < 40; index += 1)
        sequences.push(
          ...(await store.commit([{ kind: "part", part: aPart(`prt_${index}`, "msg_1", "ses_1") }])),
        )
      await crash
      expect(new Set(sequences).size).toBe(40)
      expect((await store.messages("ses_1"))[0]?.parts).toHaveLength(40)
      await store.close()
    })

    test("share one notification per transaction", async () => {
      const store = await open(await newSchema())
      const client = new pg.Client(server.url())
      await client.connect()
      const payloads: (string | undefined)[] = []
      client.on("notification", ({ payload }) => payloads.push(payload))
      await client.query(`LISTEN test_${count}_changes`)
      await begin(store)
      const all = ["a", "b", "c"].map((id) =>
        store.commit([{ kind: "part", part: aPart(id, "msg_1", "ses_1") }]),
      )
      await Promise.all(all)
      await client.query("SELECT 1")
      expect(payloads.map((payload) => JSON.parse(payload ?? ""))).toEqual([{ ses_1: "2" }, { ses_1: "5" }])
      await client.end()
      await store.close()
    })
  })

  test("continues when a connection is lost while the pool passes it to the next statement", async () => {
    const connection = await openPostgresConnection({
      ...{ url: server.url(), schema: await newSchema(), retryMs: 5_000, connections: 1 },
    })
    const query = connection.query("SELECT pg_sleep(0.2)")
    const transaction = connection.lasting(() => connection.transact((run) => run("SELECT 1 AS one")))
    await new Promise((resolve) => setTimeout(resolve, 50))
    // Afterwards, this process reads the result of the query and the end of the connection together.
    server.executeSync("SELECT pg_sleep(0.4)")
    server.executeSync(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tackle'",
    )
    await query
    expect(await transaction).toEqual([{ one: 1 }])
    await connection.close()
  })

  test("renews the other leases while a write locks one of them", async () => {
    const schema = await newSchema()
    const store = await open(schema, { leaseMs: 900 })
    const holder = { id: "eng_a", pid: process.pid, host: "here" }
    const leases: Lease[] = []
    for (const id of ["ses_a", "ses_b"]) {
      await store.commit([{ kind: "session", session: aSession(id) }])
      const taken = await store.lease(id, holder)
      if (taken.isHeld) leases.push(taken.lease)
    }
    const client = new pg.Client(server.url())
    await client.connect()
    await client.query(`BEGIN; SELECT FROM ${schema}.leases WHERE session_id = 'ses_a' FOR UPDATE`)
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    expect(await store.holder("ses_b")).toEqual(holder)
    expect(leases.map(({ isCurrent }) => isCurrent?.())).toEqual([false, true])
    await client.query("COMMIT")
    await expect.poll(() => leases[0]?.isCurrent?.()).toBe(true)
    expect(leases.map(({ lost }) => lost?.aborted)).toEqual([false, false])
    await client.end()
    await store.close()
  })

  test("renews leases, and fires the signal of a lost one", async () => {
    const schema = await newSchema()
    const [one, two] = [await open(schema, { leaseMs: 300 }), await open(schema, { leaseMs: 300 })]
    await one.commit([{ kind: "session", session: aSession("ses_1") }])
    const taken = await one.lease("ses_1", { id: "eng_1", pid: 1 })
    if (!taken.isHeld) throw new Error("the session is leased")
    const [first] = await execute(`SELECT expires_at FROM ${schema}.leases`)
    await expect
      .poll(async () => (await execute(`SELECT expires_at FROM ${schema}.leases`))[0])
      .not.toEqual(first)
    expect(await two.lease("ses_1", { id: "eng_2", pid: 2 })).toMatchObject({ isHeld: false })
    // As if the process had been stopped for longer than its lease.
    await execute(`UPDATE ${schema}.leases SET epoch = 0, expires_at = now()`)
    await expect.poll(() => taken.lease.lost?.aborted).toBe(true)
    expect(await two.lease("ses_1", { id: "eng_2", pid: 2 })).toMatchObject({ isHeld: true })
    for (const store of [one, two]) await store.close()
  })
})
