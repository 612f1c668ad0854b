import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { createOldChooser } from "../../src/engine/housekeeping.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { identifyProcess, readProcess } from "../../src/util/process-table.ts"
import { aSession } from "../suites/records.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

const hourMs = 3_600_000

test("selects old sessions that are not among the newest of their project", () => {
  const sessions = fc.uniqueArray(
    fc.record({ updated: fc.integer({ min: 0, max: 1000 }), worktree: fc.constantFrom("/a", "/b") }),
    { selector: ({ updated }) => updated },
  )
  fc.assert(
    fc.property(sessions, fc.integer({ min: 0, max: 5 }), fc.option(fc.nat(1000)), (given, keep, age) => {
      fc.pre(keep > 0 || age !== null)
      const all = given.map(({ updated, worktree }) =>
        aSession(`ses_${updated}`, { worktree, time: { created: 0, updated } }),
      )
      const { filter, isOld } = createOldChooser(age === null ? { keep } : { keep, olderThanMs: age }, 1000)
      const newestFirst = all
        .filter(({ time }) => time.updated <= (filter.updatedUntil ?? 1000))
        .toSorted((a, b) => b.time.updated - a.time.updated)
      const gone = newestFirst.filter(isOld)
      for (const session of all) {
        const newer = all.filter(
          (each) => each.worktree === session.worktree && each.time.updated > session.time.updated,
        )
        const isPast = age === null || 1000 - session.time.updated >= age
        expect(gone.includes(session)).toBe(isPast && newer.length >= keep)
      }
    }),
  )
})

test("refuses to select without a criterion", async () => {
  await using engine = await startEngine([])
  await engine.tackle.sessions.create()
  await expect(engine.tackle.sessions.prune({})).rejects.toThrow("with olderThanMs, keep, or both")
  expect(await engine.tackle.sessions.list()).toHaveLength(1)
})

test("deletes old sessions with subagents and files, except those in use, kept or elsewhere", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine([], { store })
  const { tackle, project } = engine
  const worktree = project.directory
  const at = (hours: number) => ({ created: 0, updated: Date.now() - hours * hourMs })
  const given = [
    aSession("ses_old", { worktree, time: at(30) }),
    aSession("ses_child", { worktree, time: at(1), parentID: "ses_old" }),
    aSession("ses_held", { worktree, time: at(40) }),
    aSession("ses_fresh", { worktree, time: at(2) }),
    aSession("ses_other", { worktree: "/other", time: at(50) }),
  ]
  await store.commit(given.map((session) => ({ kind: "session", session })))
  await store.lease("ses_held", { id: "eng_other", ...identifyProcess() })
  const output = join(tackle.dataDirectory, "truncate/ses_child/tool_a_1.txt")
  await mkdir(dirname(output), { recursive: true })
  await writeFile(output, "text")

  const ids = ({ deleted, held }: Awaited<ReturnType<typeof tackle.sessions.prune>>) =>
    [deleted, held].map((each) => each.map(({ id }) => id))
  const choice = { olderThanMs: 24 * hourMs }
  expect(ids(await tackle.sessions.prune({ ...choice, dryRun: true }))).toEqual([["ses_old"], ["ses_held"]])
  expect(await store.session("ses_old")).toBeDefined()
  expect(existsSync(output)).toBe(true)

  expect(ids(await tackle.sessions.prune(choice))).toEqual([["ses_old"], ["ses_held"]])
  expect(existsSync(output)).toBe(false)
  const left = await store.sessions({ limit: 10 })
  expect(left.map(({ id }) => id).sort()).toEqual(["ses_fresh", "ses_held", "ses_other"])
  expect(ids(await tackle.sessions.prune({ keep: 1, everywhere: true }))).toEqual([[], ["ses_held"]])
  expect(ids(await tackle.sessions.prune({ ...choice, everywhere: true }))).toEqual([
    ["ses_other"],
    ["ses_held"],
  ])
})

test("deletes a family completely or not at all", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine([], { store })
  const { tackle, project } = engine
  const worktree = project.directory
  const time = { created: 0, updated: 1 }
  const given = [
    aSession("ses_parent", { worktree, time }),
    aSession("ses_child", { worktree, time, parentID: "ses_parent" }),
    aSession("ses_grandchild", { worktree, time, parentID: "ses_child" }),
    aSession("ses_later", { worktree, time: { created: 0, updated: 2 } }),
  ]
  await store.commit(given.map((session) => ({ kind: "session", session })))
  const other = { id: "eng_other", ...identifyProcess() }
  const held = await store.lease("ses_grandchild", other)

  await expect(tackle.sessions.delete("ses_parent")).rejects.toThrow("is in use")
  expect(await store.sessions({ limit: 10 })).toHaveLength(4)
  // The leases taken for the attempt are released.
  for (const id of ["ses_parent", "ses_child"]) expect(await store.holder(id)).toBeUndefined()
  const result = await tackle.sessions.prune({ olderThanMs: hourMs })
  expect(result.held.map(({ id }) => id)).toEqual(["ses_parent"])
  expect(result.deleted.map(({ id }) => id)).toEqual(["ses_later"])

  if (held.isHeld) await store.release(held.lease)
  expect(await tackle.sessions.delete("ses_parent")).toBe(true)
  expect(await store.sessions({ limit: 10 })).toEqual([])
})

test("deletes nothing else for a session whose id is a path", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine([], { store })
  await engine.project.write("precious/file", "")
  await engine.project.write(".data/truncate/ses_other/file", "")
  for (const id of ["../../precious", "..", ".", ""]) {
    await store.commit([{ kind: "session", session: aSession(id) }])
    expect(await engine.tackle.sessions.delete(id)).toBe(true)
  }
  for (const name of ["precious/file", ".data/truncate/ses_other/file"])
    expect(existsSync(engine.project.path(name))).toBe(true)
})

test("reports a session that was taken meanwhile, and deletes the rest", async () => {
  const plain = createMemoryStore()
  const other = { id: "eng_other", ...identifyProcess() }
  // Another engine takes the session between the check and the deletion.
  const store: typeof plain = {
    ...plain,
    lease: async (id, holder) => {
      if (id === "ses_taken" && holder.id !== other.id) await plain.lease(id, other)
      return plain.lease(id, holder)
    },
  }
  await using engine = await startEngine([], { store })
  const worktree = engine.project.directory
  const at = (updated: number) => ({ worktree, time: { created: 0, updated } })
  const given = [aSession("ses_taken", at(1)), aSession("ses_after", at(2))]
  await store.commit(given.map((session) => ({ kind: "session", session })))
  const { held, deleted } = await engine.tackle.sessions.prune({ olderThanMs: hourMs })
  expect([held, deleted].map((each) => each.map(({ id }) => id))).toEqual([["ses_taken"], ["ses_after"]])
})

test.skipIf(process.platform !== "linux")(
  "deleting a session ends its jobs, and those of its subagents",
  async () => {
    const start = (name: string) => ({
      name: "bash",
      arguments: { command: `sleep 300 & echo $! > ${name}.pid`, description: "Wait" },
    })
    const task = {
      name: "task",
      arguments: { description: "wait", prompt: "wait", subagent_type: "general" },
    }
    await using engine = await startEngine(
      [
        { calls: [start("own"), task] },
        { calls: [start("child")] },
        { text: "started" },
        { text: "started" },
        { calls: [start("other")] },
        { text: "started" },
      ],
      { permission: { "*": "allow" }, sandbox: "off" },
    )
    const { session } = await run(engine)
    await run(engine)
    const running = async () => {
      const names = ["own", "child", "other"]
      const pids = await Promise.all(
        names.map((name) => readFile(engine.project.path(`${name}.pid`), "utf8")),
      )
      return pids.map((pid) => readProcess(Number(pid))?.alive ?? false)
    }
    expect(await running()).toEqual([true, true, true])
    await engine.tackle.sessions.delete(session.id)
    expect(await running()).toEqual([false, false, true])
  },
)
