import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import type { WaitingRequest } from "../../src/schema/request.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { processScript } from "../process-scripts.ts"
import { resultsOf } from "./run.ts"

const wait = "touch waiting; for i in $(seq 150); do [ -e go ] && break; sleep 0.2; done; echo waited"
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
    const child = spawn(
      process.execPath,
      [processScript("test/session/control-process"), project.directory, model.url, database ?? ""],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    )
    disposer.defer(() => void child.kill("SIGKILL"))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const next = async () => JSON.parse(String((await lines.next()).value))
    const id = String((await lines.next()).value)

    const store = database === undefined ? undefined : await openPostgresStore(database)
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

  describe("a request", () => {
    /** Waits until this process sees a request of the other one, and returns it. */
    async function asked({ say, next, tackle, session }: Awaited<ReturnType<typeof start>>, text: string) {
      say(text)
      const { request } = await next()
      await expect.poll(() => tackle.requests(), { timeout: 10_000 }).toHaveLength(1)
      const [seen] = await tackle.requests(session.id)
      expect(seen?.id).toBe(request.id)
      expect(await tackle.sessions.status(session.id)).toBe("waiting")
      return seen as WaitingRequest
    }

    test("for permission is listed, shown and answered in every process", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, session, next } = place
      const announced: string[] = []
      const listener = ({ type }: TackleEvent) => {
        if (type.startsWith("permission")) announced.push(type)
      }
      tackle.subscribe(listener, { otherProcesses: true })
      const ending = new AbortController()
      disposer.defer(() => ending.abort())
      const followed: string[] = []
      void (async () => {
        for await (const event of session.events({ signal: ending.signal })) followed.push(event.type)
      })()
      const request = await asked(place, "now act")
      expect(request).toMatchObject({ type: "permission", permission: "act", tool: { callID: "call_0_0" } })
      expect(tackle.pendingRequests()).toEqual([])
      await expect.poll(() => announced).toEqual(["permission.asked"])
      await expect.poll(() => followed).toContain("permission.asked")

      expect(await tackle.reply(request.id, { reply: "once" })).toBe("applied")
      expect(await tackle.reply(request.id, { reply: "reject" })).toBe("already")
      expect(await next()).toMatchObject({ type: "permission.replied", reply: "once", source: "user" })
      expect(await next()).toMatchObject({ type: "run.completed", status: "completed" })
      expect(await resultsOf(session)).toEqual(["acted"])
      expect(await tackle.requests()).toEqual([])
      const shown = ["permission.asked", "permission.replied"]
      await expect.poll(() => announced).toEqual(shown)
      await expect.poll(() => followed.filter((type) => type.startsWith("permission"))).toEqual(shown)
    })

    test("for permission grants with `always`, in the process that asks", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, say, next, session } = place
      const request = await asked(place, "now act")
      const wide = tackle.reply(request.id, { reply: "always", scope: "session", patterns: [] })
      await expect(wide).rejects.toThrow(/at least one pattern/)
      expect(await tackle.requests()).toHaveLength(1)
      expect(await tackle.reply(request.id, { reply: "always", scope: "session" })).toBe("applied")
      expect(await next()).toMatchObject({ reply: "always" })
      expect(await next()).toMatchObject({ status: "completed" })
      expect(await tackle.grants()).toMatchObject([{ permission: "act", sessionID: session.id }])
      say("now act")
      expect(await next()).toMatchObject({ type: "run.completed", status: "completed" })
      expect(await resultsOf(session)).toEqual(["acted", "acted"])
    })

    test("with questions is answered by every process", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, next, session } = place
      const request = await asked(place, "now question")
      expect(request).toMatchObject({ type: "question", questions: [{ question: "Which one?" }] })
      await expect(async () => tackle.questions.reply(request.id, [])).rejects.toThrow(/1 list of answers/)
      expect(await tackle.reply(request.id, { reply: "once" })).toBe("unknown")
      expect(await tackle.questions.reply(request.id, [["the left one"]])).toBe("applied")
      expect(await tackle.questions.reject(request.id)).toBe("unknown")
      expect(await next()).toMatchObject({ type: "question.replied", answers: [["the left one"]] })
      expect(await next()).toMatchObject({ status: "completed" })
      expect((await resultsOf(session))[0]).toContain("the left one")
    })

    test("has one answer if two processes reply at the same time", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, say, next, session } = place
      const request = await asked(place, "now act")
      say(`${request.id}|reject`)
      const here = await tackle.reply(request.id, { reply: "once" })
      const lines = [await next(), await next(), await next()]
      const there = lines.find(({ outcome }) => outcome)?.outcome
      expect([here, there].sort()).toEqual(["already", "applied"])
      const [replied, ...others] = lines.filter(({ type }) => type === "permission.replied")
      expect(others).toEqual([])
      expect(replied.reply).toBe(here === "applied" ? "once" : "reject")
      const [result] = await resultsOf(session)
      expect(result).toMatch(here === "applied" ? /^acted$/ : /^Error: The user refused/)
    })

    test("is withdrawn by the interrupt of its run, and is not answered by an input", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, next, session } = place
      const request = await asked(place, "now act")
      await session.send("once")
      expect(await tackle.requests()).toMatchObject([{ id: request.id }])
      await session.interrupt({ clear: true })
      expect(await tackle.requests()).toEqual([])
      expect(await tackle.sessions.status(session.id)).toBe("idle")
      expect(await tackle.reply(request.id, { reply: "once" })).not.toBe("applied")
      expect(await next()).toMatchObject({ reply: "reject", source: "abort" })
    })

    test("ends with a killed process", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, child, session } = place
      const request = await asked(place, "now act")
      child.kill("SIGKILL")
      await exitOf(child)
      await expect.poll(() => tackle.sessions.status(session.id), { timeout: 10_000 }).toBe("idle")
      expect(await tackle.requests()).toEqual([])
      expect(await tackle.reply(request.id, { reply: "once" })).toBe("unknown")
      await session.send("continue")
      expect(await session.wait()).toMatchObject({ status: "completed" })
      expect(await tackle.store.request(request.id)).not.toHaveProperty("answer")
    })

    test("of a stopped process is answered when it continues, or ends with its lease", async () => {
      await using disposer = new AsyncDisposableStack()
      const place = await start(disposer)
      const { tackle, child, next, session } = place
      const request = await asked(place, "now act")
      child.kill("SIGSTOP")
      if (await databaseOf()) {
        await expect.poll(() => tackle.requests(), { timeout: 10_000 }).toEqual([])
        expect(await tackle.reply(request.id, { reply: "once" })).toBe("unknown")
        expect(await tackle.sessions.status(session.id)).toBe("idle")
        return
      }
      expect(await tackle.reply(request.id, { reply: "once" })).toBe("applied")
      child.kill("SIGCONT")
      expect(await next()).toMatchObject({ reply: "once" })
      expect(await next()).toMatchObject({ status: "completed" })
      expect(await resultsOf(session)).toEqual(["acted"])
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
