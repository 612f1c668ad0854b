import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { startWorker } from "../../src/scale/worker.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type AbandonedSession, type Store, StoreUnreachableError } from "../../src/store/store.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { newId } from "../../src/util/id.ts"
import { createInProcessDispatcher } from "./in-process.ts"

/** Starts a worker over a store in memory, whose model calls `read` once for each prompt. */
async function startScripted(changed: (store: Store) => Partial<Store>, concurrency = 1) {
  const project = await temporaryProject({ "a.txt": "a" })
  const model = await startModelServer({
    script: ({ body: { messages } }) =>
      messages.at(-1)?.role === "tool"
        ? { text: "done" }
        : { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] },
  })
  const memory = createMemoryStore()
  const store = { ...memory, ...changed(memory) }
  const open = (isWorker: boolean) =>
    createTackle({
      directory: project.directory,
      dataDirectory: project.path(".data"),
      store,
      isWorker,
      model: "test/m",
      providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
      permission: { "*": "allow" },
      sandbox: "off",
    })
  const tackle = await open(false)
  const session = await tackle.sessions.create()
  const problems: unknown[] = []
  const onProblem = (_: string, error: unknown) => problems.push(error)
  const dispatcher = createInProcessDispatcher({ onProblem })
  const worker = await startWorker({
    ...{ store, dispatcher, openEngine: () => open(true), roots: [project.directory] },
    ...{ concurrency, sweepMs: 20, onProblem },
  })
  onTestFinished(async () => {
    await worker.close()
    await tackle.close()
    await model.close()
    await project.remove()
  })
  return {
    ...{ store, session, problems, dispatcher },
    async prompt(id: string) {
      await store.updateInputs(session.id, undefined, () => [
        {
          ...{ id, sessionID: session.id, seq: 0, position: 1, text: id, digest: id },
          ...{ delivery: "queue", state: "pending", time: { created: 1 } },
        },
      ])
      await dispatcher.enqueue({ key: session.id, id, reason: "input" })
    },
    /** Stores a prompt without an answer, as after the end of a process. */
    async leaveUnanswered() {
      const [first] = await session.messages()
      if (first?.message.role !== "user") throw new Error("The first message is not a prompt.")
      await store.commit([{ kind: "message", message: { ...first.message, id: newId("msg") } }])
    },
    answers: async () => JSON.stringify(await session.messages()).split('"text":"done"').length - 1,
  }
}

test("a worker continues a run that ended because the database could not be reached", async () => {
  let isDown = false
  const { prompt, answers, session, problems } = await startScripted((store) => ({
    async commit(changes, options) {
      const isResult = changes.some(
        (change) =>
          change.kind === "part" && change.part.type === "tool" && change.part.state.status === "completed",
      )
      if (isResult && !isDown) {
        isDown = true
        throw new StoreUnreachableError("The server does not answer.", undefined)
      }
      return store.commit(changes, options)
    },
  }))
  await prompt("go")
  await expect.poll(answers).toBe(1)
  expect(isDown).toBe(true)
  expect(JSON.stringify(await session.messages())).toContain(
    "The process that worked on this session ended. Continue",
  )
  expect(problems).toEqual([])
})

test("a worker continues a run whose answer could not be stored with the end of its lease", async () => {
  let isDown = false
  const { prompt, answers, problems } = await startScripted((store) => ({
    // As in PostgreSQL, the answer waits for the end of the lease.
    noteMs: 1000,
    async commit(changes, options) {
      if (options?.releases && !isDown) {
        isDown = true
        throw new StoreUnreachableError("The server does not answer.", undefined)
      }
      return store.commit(changes, options)
    },
  }))
  await prompt("go")
  await expect.poll(answers).toBe(1)
  expect(isDown).toBe(true)
  expect(problems).toEqual([])
})

test("a worker passes on a run that it cannot continue because the database cannot be reached", async () => {
  let abandoned: AbandonedSession[] = []
  let isDown = false
  const passedOn: (boolean | undefined)[] = []
  const { prompt, answers, problems, session, leaveUnanswered } = await startScripted((memory) => ({
    abandoned: async () => abandoned,
    async lease(...given) {
      isDown = abandoned.length > 0 && passedOn.length === 0
      return memory.lease(...given)
    },
    async messages(...given) {
      if (!isDown) return memory.messages(...given)
      isDown = false
      throw new StoreUnreachableError("The server does not answer.", undefined)
    },
    async release(lease, options) {
      if (abandoned.length > 0) passedOn.push(options?.passesOn)
      return memory.release(lease, options)
    },
  }))
  await prompt("go")
  await expect.poll(answers).toBe(1)
  await leaveUnanswered()
  abandoned = [{ sessionID: session.id, epoch: 1, expired: 1 }]
  await expect.poll(() => passedOn[0]).toBe(true)
  await expect.poll(answers).toBe(2)
  expect(problems).toEqual([])
})

test("a worker tries again if it cannot read or lease a session", async () => {
  let failures: ("session" | "lease")[] = []
  const { prompt, answers } = await startScripted((memory) => {
    const failing = (name: "session" | "lease") => {
      if (failures[0] !== name) return
      failures = failures.slice(1)
      throw new StoreUnreachableError("The server does not answer.", undefined)
    }
    return {
      async session(id) {
        failing("session")
        return memory.session(id)
      },
      async lease(...given) {
        failing("lease")
        return memory.lease(...given)
      },
    }
  })
  failures = ["session", "lease"]
  await prompt("go")
  await expect.poll(answers, { timeout: 5_000 }).toBe(1)
  expect(failures).toEqual([])
})

test("a worker waits for its own run of a session before it starts the next one", async () => {
  let isReplaced = false
  const place = await startScripted(
    (store) => ({
      async commit(changes, options) {
        if (options?.releases && !isReplaced) {
          isReplaced = true
          await place.prompt("next")
          // As after an expired lease: the job of this run is replaced before the run has ended.
          await place.dispatcher.enqueue({
            ...{ key: place.session.id, id: "again", reason: "continue", replaces: true },
          })
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
        return store.commit(changes, options)
      },
    }),
    2,
  )
  await place.prompt("go")
  await expect.poll(place.answers).toBe(2)
  expect(place.problems).toEqual([])
})

test("a worker continues a session each time that its lease expires, also if the lease was renewed", async () => {
  let abandoned: AbandonedSession[] = []
  const { prompt, answers, session, leaveUnanswered } = await startScripted(() => ({
    abandoned: async () => abandoned,
  }))
  await prompt("go")
  await expect.poll(answers).toBe(1)
  const expire = async (expired: number) => {
    await leaveUnanswered()
    abandoned = [{ sessionID: session.id, epoch: 1, expired }]
  }
  await expire(1)
  await expect.poll(answers).toBe(2)
  await expire(2)
  await expect.poll(answers).toBe(3)
})

test("waiting for a session does not end when a worker leases the session between two checks", async () => {
  const project = await temporaryProject({})
  const memory = createMemoryStore()
  const worker = { id: "eng_worker", host: "other", pid: 1, isWorker: true }
  let checks = 0
  let isRunning = true
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    store: {
      ...memory,
      abandoned: async () => [],
      async holder() {
        checks += 1
        return checks > 1 && isRunning ? worker : undefined
      },
    },
    dispatch: async () => {},
  })
  onTestFinished(async () => {
    await tackle.close()
    await project.remove()
  })
  const session = await tackle.sessions.create()
  let isOver = false
  const waiting = session.wait().then(() => {
    isOver = true
  })
  await expect.poll(() => checks, { timeout: 5_000 }).toBeGreaterThan(3)
  expect(isOver).toBe(false)
  isRunning = false
  await waiting
})
