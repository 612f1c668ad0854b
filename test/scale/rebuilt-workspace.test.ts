import { execFile } from "node:child_process"
import { mkdir, readdir } from "node:fs/promises"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createWorkspaceOpener } from "../../src/engine/workspaces.ts"
import { startWorker } from "../../src/scale/worker.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { startGitServer } from "../git-server.ts"
import { aSession } from "../suites/records.ts"
import { createInProcessDispatcher } from "./in-process.ts"

test("a worker rebuilds the worktree of a session whose machine no longer exists, and runs the session there", async () => {
  await using disposer = new AsyncDisposableStack()
  const remotes = await temporaryProject({})
  disposer.defer(() => remotes.remove())
  const git = await startGitServer(remotes.directory)
  disposer.defer(() => git.stop())
  const project = await temporaryProject({ "a.txt": "a\n" }, { git: true })
  const run = (...args: string[]) => promisify(execFile)("git", args, { cwd: project.directory })
  await run("init", "--quiet", "--bare", "--initial-branch=main", remotes.path("r.git"))
  await run("remote", "add", "origin", `${git.url}/r.git`)
  await run("push", "--quiet", "origin", "main")

  const model = await startModelServer({
    script: [
      { calls: [{ name: "write", arguments: { filePath: "b.txt", content: "b\n" } }] },
      { text: "done" },
      { calls: [{ name: "bash", arguments: { command: "cat a.txt b.txt > c.txt" } }] },
      { text: "done" },
    ],
  })
  disposer.defer(() => model.close())
  const machine = await temporaryProject({})
  disposer.defer(() => machine.remove())
  const store = createMemoryStore()
  const contents = { ...createContentDirectory(machine.path("contents")), isShared: true }
  const open = (directory: string, isWorker: boolean) =>
    createTackle({
      directory,
      dataDirectory: machine.path("data"),
      store,
      contents,
      isWorker,
      model: "test/m",
      providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
      permission: { "*": "allow" },
      sandbox: "off",
    })
  const lost = await open(project.directory, false)
  const session = await lost.sessions.create()
  await session.send("go")
  await session.wait()
  await lost.close()
  await project.remove()

  const workspaces = machine.path("data/workspace")
  await mkdir(workspaces, { recursive: true })
  const problems: unknown[] = []
  const onProblem = (_: string, error: unknown) => problems.push(error)
  const dispatcher = createInProcessDispatcher({ onProblem })
  const worker = await startWorker({
    store,
    dispatcher,
    openEngine: (directory) => open(directory, true),
    roots: [workspaces],
    openWorkspace: await createWorkspaceOpener({ store, contents, dataDirectory: machine.path("data") }),
    rebuildAfterMs: 0,
    concurrency: 1,
    onProblem,
  })
  disposer.defer(() => worker.close())
  const input = { id: "inp_1", sessionID: session.id, seq: 0, position: 1, text: "more", digest: "" } as const
  await store.updateInputs(session.id, undefined, () => [
    { ...input, delivery: "queue", state: "pending", time: { created: 1 } },
  ])
  await dispatcher.enqueue({ key: session.id, id: "inp_1", reason: "input" })
  await expect.poll(() => model.requests.length, { timeout: 20_000 }).toBe(4)
  await expect.poll(async () => store.holder(session.id), { timeout: 20_000 }).toBeUndefined()
  const directory = (await store.session(session.id))?.directory ?? ""
  expect(directory.startsWith(workspaces)).toBe(true)
  expect((await readdir(directory)).sort()).toEqual([".git", "a.txt", "b.txt", "c.txt"])
  expect(problems).toEqual([])
})

test("a worker does not count the time of an earlier wait for the machine of a session", async () => {
  await using disposer = new AsyncDisposableStack()
  const machine = await temporaryProject({})
  disposer.defer(() => machine.remove())
  const store = createMemoryStore()
  const session = aSession("ses_1", {
    directory: "/lost",
    workspace: {
      host: "lost",
      root: "/lost",
      git: { remote: "https://example.com/a", commit: "a".repeat(40), unpushed: 0, uncommitted: [] },
    },
  })
  const queue = createInProcessDispatcher({ onProblem() {} })
  const results: unknown[] = []
  const worker = await startWorker({
    store,
    dispatcher: {
      ...queue,
      work: ({ handle, ...options }) =>
        queue.work({
          ...options,
          async handle(job) {
            const again = await handle(job)
            results.push(again?.reason)
            return again
          },
        }),
    },
    openEngine: () => Promise.reject(new Error("no engine")),
    roots: [machine.directory],
    async openWorkspace() {
      results.push("rebuilt")
      throw new Error("not here")
    },
    rebuildAfterMs: 1_500,
    concurrency: 1,
    onProblem() {},
  })
  disposer.defer(() => worker.close())
  await store.commit([{ kind: "session", session }])
  await queue.enqueue({ key: "ses_1", id: "1", reason: "input" })
  await expect.poll(() => results).toEqual(["input"])
  // A worker on the machine of the session takes the job.
  await store.deleteSession("ses_1")
  await expect.poll(() => results, { timeout: 10_000 }).toEqual(["input", undefined])
  await store.commit([{ kind: "session", session }])
  await queue.enqueue({ key: "ses_1", id: "2", reason: "input" })
  await expect.poll(() => results.slice(2), { timeout: 10_000 }).toEqual(["input", "rebuilt", "input"])
})
