import { spawn } from "node:child_process"
import { once } from "node:events"
import { DatabaseSync } from "node:sqlite"
import { expect, onTestFinished, test, vi } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { stopElsewhere, waitForLease, withLease } from "../../src/session/lease.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Store } from "../../src/store/store.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import { aSession } from "../suites/records.ts"
import { run } from "./run.ts"

/**
 * A project with several engines on one database. The model runs a command that lasts until `go` exists, then says
 * `Done.`.
 */
async function place(disposer: AsyncDisposableStack) {
  const project = await temporaryProject()
  disposer.defer(() => project.remove())
  const wait = "touch waiting; for i in $(seq 150); do [ -e go ] && break; sleep 0.2; done; echo waited"
  const server = await startModelServer({
    script: ({ body: { messages } }) =>
      messages.at(-1)?.role === "user" && JSON.stringify(messages.at(-1)).includes("wait")
        ? { calls: [{ name: "bash", arguments: { command: wait } }] }
        : { text: "Done." },
  })
  disposer.defer(() => server.close())
  const options = {
    directory: project.directory,
    dataDirectory: project.path(".data"),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow" },
  } as const
  return { project, server, options }
}

test("refuses a second engine while a session is in use, without changes", async () => {
  await using disposer = new AsyncDisposableStack()
  const { project, server, options } = await place(disposer)
  const [first, second] = [await createTackle(options), await createTackle(options)]
  disposer.defer(() => first.close())
  disposer.defer(() => second.close())
  const session = await first.sessions.create()
  const same = await second.sessions.get(session.id)
  if (!same) throw new Error("the second engine does not see the session")

  expect((await run({ tackle: second }, { session: same, text: "hello" })).end.status).toBe("completed")
  const working = run({ tackle: first }, { session, text: "wait" })
  await expect.poll(() => project.read("waiting").catch(() => undefined), { timeout: 25_000 }).toBe("")
  const before = await session.messages()
  const { end, events } = await run({ tackle: second }, { session: same, text: "me too" })
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(JSON.stringify(events)).toContain(`in use by process ${process.pid}`)
  await expect(second.sessions.delete(session.id)).rejects.toThrow(/in use/)
  expect(await session.messages()).toEqual(before)

  await project.write("go", "")
  expect((await working).end).toMatchObject({ status: "completed", text: "Done." })
  await run({ tackle: second }, { session: same, text: "and now?" })
  const sent = JSON.stringify(server.requests.at(-1)?.body.messages)
  expect(sent).toMatch(/hello[\s\S]*waited[\s\S]*and now\?/)
  expect(sent).not.toContain("me too")
  expect(await second.sessions.delete(session.id)).toBe(true)
})

test("ignores the lease of a killed process", async () => {
  await using disposer = new AsyncDisposableStack()
  const { project, server, options } = await place(disposer)
  const child = spawn(
    process.execPath,
    [processScript("test/session/prompt-process"), project.directory, server.url, "wait"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  await expect.poll(() => project.read("waiting").catch(() => undefined), { timeout: 25_000 }).toBe("")
  const tackle = await createTackle(options)
  disposer.defer(() => tackle.close())
  const session = await tackle.sessions.latest()
  if (!session) throw new Error("the session was not kept")
  expect((await run({ tackle }, { session, text: "hello" })).end.status).toBe("failed")

  child.kill("SIGKILL")
  await once(child, "exit")
  await project.write("go", "")
  expect((await run({ tackle }, { session, text: "hello" })).end).toMatchObject({
    status: "completed",
    text: "Done.",
  })
})

test.each([
  ["releases the lease of failed work after its calls were closed", true],
  ["keeps the lease of failed work whose calls could not be closed", false],
])("%s", async (_, closes) => {
  const store = createMemoryStore()
  await store.commit([{ kind: "session", session: aSession("ses_1") }])
  const holder = { id: "eng_1", pid: process.pid }
  const settle = () => (closes ? Promise.resolve() : Promise.reject(new Error("the disk is full")))
  const work = withLease({ store, sessionID: "ses_1", holder, settle }, () =>
    Promise.reject(new Error("the work failed")),
  )
  await expect(work).rejects.toThrow("the work failed")
  expect(await store.holder("ses_1")).toEqual(closes ? undefined : holder)
})

test("waits for an engine that appeared to be dead and renewed its lease", async () => {
  const memory = createMemoryStore()
  const sessionID = "ses_1"
  await memory.commit([{ kind: "session", session: aSession(sessionID) }])
  const other = { id: "eng_2", pid: process.pid }
  const taken = await memory.lease(sessionID, other)
  if (!taken.isHeld) throw new Error("the session is in use")
  let looks = 0
  const store: Store = {
    ...memory,
    async holder(id) {
      looks += 1
      return looks === 2 ? undefined : memory.holder(id)
    },
  }
  const settle = vi.fn(async () => {})
  let isStopped = false
  const use = { store, sessionID, holder: { id: "eng_1", pid: process.pid } }
  const stopping = stopElsewhere(use, settle).then(() => (isStopped = true))
  await expect.poll(() => looks).toBeGreaterThan(3)
  expect(settle).toHaveBeenCalledTimes(1)
  expect(isStopped).toBe(false)
  await memory.release(taken.lease)
  await stopping
  expect(settle).toHaveBeenCalledTimes(1)
})

test.each([
  ["checks a session that another engine uses once per second", false, 1_000],
  ["checks a session whose changes are reported only every ten seconds, and after each write", true, 10_000],
])("%s", async (_, seesWrites, everyMs) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  onTestFinished(() => void vi.useRealTimers())
  let reportWrite = () => {}
  const store: Store = {
    ...createMemoryStore(),
    // Reports the writes of other engines.
    watch(listener) {
      reportWrite = () => listener(new Set(["ses_1"]))
      return () => {}
    },
  }
  const ending = new AbortController()
  let checks = 0
  const isTrue = async () => {
    checks += 1
    return false
  }
  const waiting = waitForLease({ store, sessionID: "ses_1", seesWrites }, isTrue, ending.signal)
  await vi.advanceTimersByTimeAsync(everyMs - 1)
  expect(checks).toBe(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(checks).toBe(2)
  reportWrite()
  await vi.advanceTimersByTimeAsync(0)
  expect(checks).toBe(seesWrites ? 3 : 2)
  ending.abort()
  await expect(waiting).rejects.toThrow()
})

test("releases a session whose run fails at a damaged message, so that another engine can delete it", async () => {
  await using disposer = new AsyncDisposableStack()
  const { project, options } = await place(disposer)
  const first = await createTackle(options)
  const { session } = await run({ tackle: first }, { text: "hello" })
  await first.close()
  using database = new DatabaseSync(project.path(".data/tackle.db"))
  database.exec("UPDATE parts SET data = '{'")

  const [second, third] = [await createTackle(options), await createTackle(options)]
  disposer.defer(() => second.close())
  disposer.defer(() => third.close())
  const damaged = await second.sessions.get(session.id)
  if (!damaged) throw new Error("the session does not exist")
  const { end } = await run({ tackle: second }, { session: damaged, text: "hello" })
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  await third.sessions.delete(session.id)
  expect(await third.sessions.get(session.id)).toBeUndefined()
})
