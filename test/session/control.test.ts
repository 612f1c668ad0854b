import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { resultsOf } from "./run.ts"

const wait = "touch waiting; for i in $(seq 600); do [ -e go ] && break; sleep 0.05; done; echo waited"
const calls = {
  wait: { name: "bash", arguments: { command: wait } },
  act: { name: "act", arguments: {} },
  question: { name: "question", arguments: { questions: [{ question: "Which one?" }] } },
}

describe("SQLite", () => testControl(async () => undefined))

describePostgres("PostgreSQL", () => {
  let server: PostgresServer

  beforeAll(async () => {
    server = await startPostgres()
    await migratePostgres(server.url())
  })
  afterAll(() => server.stop())

  testControl(async () => server.url())
})

/** Tests of a process that runs a session, and of an engine of this process on the same database that controls it. */
function testControl(databaseOf: () => Promise<string | undefined>): void {
  async function start(disposer: AsyncDisposableStack) {
    const project = await temporaryProject()
    disposer.defer(() => project.remove())
    const model = await startModelServer({
      script({ body: { messages } }) {
        const last = messages.at(-1)
        const said = last?.role === "user" ? JSON.stringify(last) : ""
        const [, call] = Object.entries(calls).find(([name]) => said.includes(`now ${name}`)) ?? []
        return call ? { calls: [call] } : { text: "Done." }
      },
    })
    disposer.defer(() => model.close())
    const database = await databaseOf()
    const script = new URL("./control-process.ts", import.meta.url).pathname
    const child = spawn(process.execPath, [script, project.directory, model.url, database ?? ""], {
      stdio: ["pipe", "pipe", "inherit"],
    })
    disposer.defer(() => void child.kill("SIGKILL"))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async () => JSON.parse(String((await lines.next()).value))
    const id = String((await lines.next()).value)

    const store = database === undefined ? undefined : await openPostgresStore(database, { leaseMs: 1000 })
    disposer.defer(() => store?.close())
    const options: TackleOptions = {
      directory: project.directory,
      dataDirectory: project.path(".data"),
      store,
      model: "test/m",
      providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
      permission: { "*": "allow" },
    }
    const tackle = await createTackle(options)
    disposer.defer(() => tackle.close())
    const session = await tackle.sessions.get(id)
    if (!session) throw new Error("the session is not stored")
    return {
      ...{ project, child, next, tackle, session },
      say: (text: string) => void child.stdin.write(`${text}\n`),
      /** Waits until the command of the other process runs. */
      waiting: () =>
        expect.poll(() => project.read("waiting").catch(() => undefined), { timeout: 25_000 }).toBe(""),
    }
  }

  describe("interrupt", () => {
    test("ends the run of another process and pauses its queue", async () => {
      await using disposer = new AsyncDisposableStack()
      const { say, waiting, tackle, session, next } = await start(disposer)
      say("now wait")
      await waiting()
      say("later")
      await expect.poll(() => session.inputs.list()).toHaveLength(1)
      expect(await session.interrupt()).toEqual([])
      expect(await tackle.sessions.status(session.id)).toBe("idle")
      expect(await next()).toMatchObject({ type: "run.completed", status: "interrupted" })
      expect(await resultsOf(session)).toEqual([expect.stringContaining("abort")])
      expect(await session.inputs.list()).toMatchObject([{ text: "later", paused: true }])

      // The queue continues in this process.
      await session.inputs.resume()
      expect(await session.wait()).toMatchObject({ status: "completed", text: "Done." })
    })

    test("withdraws and returns the queue of another process with `clear`", async () => {
      await using disposer = new AsyncDisposableStack()
      const { say, waiting, session, next } = await start(disposer)
      say("now wait")
      await waiting()
      say("later")
      await expect.poll(() => session.inputs.list()).toHaveLength(1)
      expect(await session.interrupt({ clear: true })).toMatchObject([{ text: "later", state: "withdrawn" }])
      expect(await next()).toMatchObject({ status: "interrupted" })
      expect(await session.inputs.list()).toEqual([])

      // The next run of the other process is not stopped by the old interrupt.
      say("again")
      expect(await next()).toMatchObject({ status: "completed", text: "Done." })
    })

    test("of a killed process closes its calls", async () => {
      await using disposer = new AsyncDisposableStack()
      const { say, waiting, session, child, tackle } = await start(disposer)
      say("now wait")
      await waiting()
      child.kill("SIGSTOP")
      const interrupted = session.interrupt()
      child.kill("SIGKILL")
      await exitOf(child)
      await interrupted
      expect(await tackle.sessions.status(session.id)).toBe("idle")
      expect(await resultsOf(session)).toEqual([
        expect.stringContaining("The process ended while this call was running"),
      ])
    })

    test("reaches a stopped process when it continues, or when it has lost its lease", async () => {
      await using disposer = new AsyncDisposableStack()
      const { say, waiting, session, child, next } = await start(disposer)
      say("now wait")
      await waiting()
      child.kill("SIGSTOP")
      const interrupted = session.interrupt()
      if (await databaseOf()) await interrupted
      child.kill("SIGCONT")
      await interrupted
      const end = await next()
      expect(["interrupted", "failed"]).toContain(end.status)
    })
  })

  describe("wait", () => {
    test("resolves when the run and the queue of another process have ended", async () => {
      await using disposer = new AsyncDisposableStack()
      const { say, waiting, session, project, next } = await start(disposer)
      say("now wait")
      await waiting()
      for (const text of ["one", "two", "three"]) say(text)
      await expect.poll(() => session.inputs.list()).toHaveLength(3)
      const waited = session.wait()
      await project.write("go", "")
      await waited
      expect(await session.inputs.list()).toEqual([])
      const texts = (await session.messages()).flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === "text" ? part.text : [])),
      )
      expect(texts).toEqual(["now wait", "Done.", "one", "Done.", "two", "Done.", "three", "Done."])
      for (let run = 0; run < 4; run += 1) expect(await next()).toMatchObject({ status: "completed" })
    })
  })
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
}
