import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { expect, test } from "vitest"
import { defaultRetentionLimits, startHousekeeping } from "../../src/engine/housekeeping.ts"
import { createTemporaryFileJournal } from "../../src/files/temporary-files.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { defaultContentLimits, hashOf } from "../../src/store/content-store.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { createJobTable } from "../../src/tools/bash/background-jobs.ts"
import { createProcessJournal } from "../../src/util/process-journal.ts"

const old = new TextEncoder().encode("what it was before\n")

/** A project in which a killed process left the temporary copy of a patched file. */
async function killedPatch() {
  const project = await temporaryProject()
  const backup = project.path(".tackle-0123456789ab.tmp")
  const book = resolve(import.meta.dirname, "../../src/files/temporary-files.ts")
  const program = `
    import { createTemporaryFileJournal } from ${JSON.stringify(book)}
    const book = createTemporaryFileJournal(${JSON.stringify(project.path("data/temporary"))}, () => {})
    book.track(${JSON.stringify({ path: backup, backupOf: project.path("a.txt") })})
    process.kill(process.pid, "SIGKILL")`
  writeFileSync(project.path("killed.mjs"), program)
  spawnSync(process.execPath, [project.path("killed.mjs")])
  expect(readdirSync(project.path("data/temporary"))).toHaveLength(1)
  writeFileSync(backup, old)
  return { project, backup }
}

async function keepHouse(project: TemporaryProject): Promise<string[]> {
  const faults: string[] = []
  const onProblem = (message: string, error: unknown) => faults.push(`${message}: ${String(error)}`)
  const data = project.path("data")
  await startHousekeeping({
    dataDirectory: data,
    retention: defaultRetentionLimits,
    store: createMemoryStore(),
    contents: createContentDirectory(join(data, "snapshot"), defaultContentLimits),
    processes: createProcessJournal(join(data, "processes"), onProblem),
    temporaries: createTemporaryFileJournal(join(data, "temporary"), onProblem),
    placeholders: { endOrphans: async () => {} },
    jobs: createJobTable(),
    onProblem,
  }).done()
  return faults
}

test("removes temporary copies that a session still stores, and renews the stored content", async () => {
  const { project, backup } = await killedPatch()
  const contents = createContentDirectory(project.path("data/snapshot"), defaultContentLimits)
  await contents.put(old)
  const longAgo = new Date(Date.now() - 30 * 24 * 3_600_000)
  for (const entry of readdirSync(project.path("data/snapshot"), { recursive: true, withFileTypes: true }))
    if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), longAgo, longAgo)
  expect(await keepHouse(project)).toEqual([])
  expect(existsSync(backup)).toBe(false)
  expect(await contents.get(hashOf(old))).toEqual(Buffer.from(old))
  await project.remove()
})

test("keeps and reports temporary copies that are stored nowhere else", async () => {
  const { project, backup } = await killedPatch()
  expect(await keepHouse(project)).toEqual([expect.stringContaining(backup)])
  expect(existsSync(backup)).toBe(true)
  await project.remove()
})
