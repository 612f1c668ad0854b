import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { processScript } from "../process-scripts.ts"
import { run } from "./run.ts"

describePostgres("a session in PostgreSQL that two processes use", () => {
  let postgres: PostgresServer

  beforeAll(async () => {
    postgres = await startPostgres()
    await migratePostgres(postgres.url())
  })
  afterAll(() => postgres.stop())

  /** A process that waits in a command until the file `go` exists, and an engine of this process on the same store. */
  async function start(disposer: AsyncDisposableStack, leaseMs: number, text = "wait") {
    const project = await temporaryProject()
    disposer.defer(() => project.remove())
    const wait = "touch waiting; for i in $(seq 150); do [ -e go ] && break; sleep 0.2; done; echo waited"
    const model = await startModelServer({
      script: ({ body: { messages } }) => {
        if (JSON.stringify(messages.at(-1)).includes("stream"))
          return { text: "word ".repeat(20), pieceSize: 5, pieceDelayMs: 300 }
        return messages.at(-1)?.role === "user" && JSON.stringify(messages.at(-1)).includes("wait")
          ? { calls: [{ name: "bash", arguments: { command: wait } }] }
          : { text: "Done." }
      },
    })
    disposer.defer(() => model.close())
    const child = spawn(
      process.execPath,
      [
        processScript("test/session/postgres-process"),
        project.directory,
        model.url,
        postgres.url(),
        String(leaseMs),
        text,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    )
    disposer.defer(() => void child.kill("SIGKILL"))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const id = String((await lines.next()).value)

    const store = await openPostgresStore(postgres.url(), { leaseMs })
    disposer.defer(() => store.close())
    const tackle = await createTackle({
      directory: project.directory,
      dataDirectory: project.path(".data"),
      store,
      model: "test/m",
      providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
      permission: { "*": "allow" },
    })
    disposer.defer(() => tackle.close())
    if (text === "wait")
      await expect.poll(() => project.read("waiting").catch(() => undefined), { timeout: 25_000 }).toBe("")
    const session = await tackle.sessions.get(id)
    if (!session) throw new Error("the session is not stored")
    return { project, child, lines, store, tackle, session }
  }

  /** Prompts the session until no other process holds it. */
  async function takeOver({ tackle, session }: Awaited<ReturnType<typeof start>>) {
    const texts: (string | undefined)[] = []
    await expect
      .poll(
        async () => {
          const { end } = await run({ tackle }, { session, text: "hello" })
          texts.push(end.status)
          return end.status
        },
        { timeout: 20_000, interval: 100 },
      )
      .toBe("completed")
    return texts
  }

  test("is followed by the other process, and refuses a second run", async () => {
    await using disposer = new AsyncDisposableStack()
    const { project, child, lines, tackle, session, store } = await start(disposer, 3000)
    const { end, events } = await run({ tackle }, { session, text: "me too" })
    expect(end).toMatchObject({ status: "failed" })
    expect(JSON.stringify(events)).toContain(`in use by process ${child.pid}`)

    const ending = new AbortController()
    const types: string[] = []
    const following = (async () => {
      for await (const event of session.events({ after: 0, signal: ending.signal })) {
        const text = "part" in event && event.part.type === "text" ? event.part.text : ""
        types.push(`${event.type} ${text}`.trim())
      }
    })()
    await project.write("go", "")
    expect(JSON.parse(String((await lines.next()).value))).toMatchObject([
      { status: "completed", text: "Done." },
    ])
    await expect.poll(() => types.at(-1)).toBeDefined()
    await expect.poll(() => types).toContain("part.updated Done.")
    ending.abort()
    await following
    await exitOf(child)
    expect(await store.holder(session.id)).toBeUndefined()
  })

  test("is taken over after its process was killed", async () => {
    await using disposer = new AsyncDisposableStack()
    const place = await start(disposer, 1000)
    place.child.kill("SIGKILL")
    await exitOf(place.child)
    // The lease outlives the process.
    expect((await takeOver(place)).length).toBeGreaterThan(1)
    const errors = JSON.stringify(await place.session.messages())
    expect(errors).toContain("The process ended while this call was running")
  })

  test("is taken over after its process was stopped, which can then write nothing", async () => {
    await using disposer = new AsyncDisposableStack()
    const place = await start(disposer, 1000)
    const { child, lines, project, session } = place
    child.kill("SIGSTOP")
    await takeOver(place)
    const [before, sequence] = [await session.messages(), await session.sequence()]

    await project.write("go", "")
    child.kill("SIGCONT")
    const ends = String((await lines.next()).value)
    expect(JSON.parse(ends)).toMatchObject([{ error: { name: "store.lease" } }, { status: "failed" }])
    expect(ends).toContain("Another process has taken over session")
    await exitOf(child)
    expect(await session.messages()).toEqual(before)
    expect(await session.sequence()).toBe(sequence)
  })

  test("receives no text of an old run after its process was stopped", async () => {
    await using disposer = new AsyncDisposableStack()
    const place = await start(disposer, 1000, "stream")
    const { child, lines, session } = place
    const texts = async () =>
      (await session.messages()).flatMap(({ message, parts }) =>
        message.role === "assistant" ? parts.filter(({ type }) => type === "text") : [],
      )
    await expect.poll(async () => (await texts()).length, { timeout: 25_000 }).toBe(1)
    child.kill("SIGSTOP")
    await takeOver(place)

    const ending = new AbortController()
    const streamed: string[] = []
    const following = (async () => {
      for await (const event of session.events({ signal: ending.signal }))
        if (event.type.startsWith("part.") && !("seq" in event)) streamed.push(JSON.stringify(event))
    })()
    // The stopped process receives this announcement when it continues.
    await session.sequence()
    child.kill("SIGCONT")
    expect(JSON.parse(String((await lines.next()).value))).toMatchObject([
      { error: { name: "store.lease" } },
      { status: "failed" },
    ])
    await exitOf(child)
    ending.abort()
    await following
    expect(streamed).toEqual([])
  })
})

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
}
