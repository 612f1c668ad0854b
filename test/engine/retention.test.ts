import { existsSync } from "node:fs"
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { createProcessJournal } from "../../src/util/process-journal.ts"
import { identifyProcess } from "../../src/util/process-table.ts"
import { dayMs } from "../../src/util/sweep.ts"
import { aSession } from "../suites/records.ts"

const hash = "a".repeat(64)
const files = [
  "truncate/ses_1/tool_a_1.txt",
  `snapshot/aa/${hash}`,
  `external-tool/${hash}/tool`,
  "log/tackle-2026-01-01.log",
]

/** A data directory whose files have the given age in days. */
async function dataDirectory(days: number, names = files): Promise<string> {
  const project = await temporaryProject()
  const root = project.path(".data")
  for (const name of names) {
    const path = join(root, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, "text")
    const at = new Date(Date.now() - days * dayMs)
    for (const each of [path, dirname(path)]) await utimes(each, at, at)
  }
  return root
}

/** Starts and closes an engine, which cleans up. */
async function startOnce(data: string, options: Partial<TackleOptions> = {}): Promise<string[]> {
  const faults: string[] = []
  const tackle = await createTackle({
    directory: dirname(data),
    dataDirectory: data,
    store: createMemoryStore(),
    environment: { PATH: process.env.PATH },
    onProblem: (message) => faults.push(message),
    ...options,
  })
  await tackle.close()
  return faults
}

const left = (data: string) => files.filter((name) => existsSync(join(data, name)))

test("removes old files of every kind at startup, and keeps the rest", async () => {
  const [old, fresh] = [await dataDirectory(8), await dataDirectory(6)]
  expect(await startOnce(old)).toEqual([])
  expect(left(old)).toEqual([])
  await startOnce(fresh)
  expect(left(fresh)).toEqual(files)
  const strict = await dataDirectory(3)
  await startOnce(strict, { limits: { retention: { days: 2 }, retentionDays: 5 } })
  expect(left(strict)).toEqual([files[0]])
})

test("cleans up once a day", async () => {
  const data = await dataDirectory(8)
  await startOnce(data)
  await mkdir(join(data, "truncate/ses_2"), { recursive: true })
  const at = new Date(Date.now() - 8 * dayMs)
  await utimes(join(data, "truncate/ses_2"), at, at)
  await startOnce(data)
  expect(await readdir(join(data, "truncate"))).toEqual(["ses_2"])
  const yesterday = new Date(Date.now() - dayMs - 1000)
  await utimes(join(data, "swept"), yesterday, yesterday)
  await startOnce(data)
  expect(await readdir(join(data, "truncate"))).toEqual([])
})

test("keeps outputs of a session that is in use or runs a command", async () => {
  const names = ["ses_free", "ses_held", "ses_gone", "ses_job"].map((id) => `truncate/${id}/tool_a_1.txt`)
  const data = await dataDirectory(8, names)
  const store = createMemoryStore()
  const ours = identifyProcess()
  for (const id of ["ses_free", "ses_held", "ses_gone", "ses_job"])
    await store.commit([{ kind: "session", session: aSession(id) }])
  await store.lease("ses_held", { id: "eng_1", ...ours })
  await store.lease("ses_gone", { id: "eng_2", ...ours, startTime: 1, bootID: "another" })
  // Like another engine of a living process.
  const book = createProcessJournal(join(data, "processes"), (message) => expect.fail(message))
  const tree = { group: 999_999, mark: "TACKLE_PROCESS=none", startTime: 1, bootID: "another" }
  book.add(tree, "ses_job")
  await startOnce(data, { store })
  expect((await readdir(join(data, "truncate"))).sort()).toEqual(["ses_held", "ses_job"])
})

test("keeps outputs while another session of the family is in use", async () => {
  const family = { ses_top: undefined, ses_left: "ses_top", ses_right: "ses_top", ses_deep: "ses_right" }
  const ids = [...Object.keys(family), "ses_other", "ses_orphan"]
  const data = await dataDirectory(
    8,
    ids.map((id) => `truncate/${id}/tool_a_1.txt`),
  )
  const store = createMemoryStore()
  for (const [id, parentID] of Object.entries({ ...family, ses_orphan: "ses_none" }))
    await store.commit([
      { kind: "session", session: aSession(id, parentID === undefined ? {} : { parentID }) },
    ])
  await store.lease("ses_left", { id: "eng_1", ...identifyProcess() })
  await startOnce(data, { store })
  expect((await readdir(join(data, "truncate"))).sort()).toEqual(Object.keys(family).sort())
})

test("does not create a missing data directory", async () => {
  const project = await temporaryProject()
  await startOnce(project.path(".data"))
  expect(existsSync(project.path(".data"))).toBe(false)
})
