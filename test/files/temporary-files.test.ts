import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, existsSync, linkSync } from "node:fs"
import { mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import {
  createTemporaryFileJournal,
  removeTemporary,
  type TemporaryFile,
} from "../../src/files/temporary-files.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { temporaryName } from "../../src/util/file-system.ts"

async function setup() {
  const project = await temporaryProject()
  onTestFinished(() => project.remove())
  const directory = project.path("journal")
  const problems: string[] = []
  const journal = createTemporaryFileJournal(directory, (message, error) =>
    problems.push(`${message}: ${String(error)}`),
  )
  const place = project.path("work")
  await mkdir(place)
  const child = spawn("true")
  await once(child, "exit")
  let count = 0
  /** Writes a record of a process that has ended. */
  const left = (file: TemporaryFile) =>
    writeFile(
      join(directory, `${child.pid}-${count++}.json`),
      JSON.stringify({ owner: { pid: child.pid }, ...file }),
    )
  await mkdir(directory)
  return { project, directory, journal, problems, place, left }
}

const keepsNothing = async () => false

test("removes only the recorded files of killed processes", async () => {
  const { directory, journal, problems, place, left } = await setup()
  const [named, likeIt, ours] = [temporaryName(), temporaryName(), temporaryName()].map((name) =>
    join(place, name),
  )
  for (const path of [named, likeIt, ours]) await writeFile(path ?? "", "new")
  await left({ path: named ?? "" })
  const record = journal.track({ path: ours ?? "" })
  await journal.endOrphans(keepsNothing)
  expect([named, likeIt, ours].map((path) => existsSync(path ?? ""))).toEqual([false, true, true])
  expect(await readdir(directory)).toHaveLength(1)
  record.done()
  expect(await readdir(directory)).toEqual([])
  expect(problems).toEqual([])
})

test("removes nothing for a record of another file or a moved directory", async () => {
  const { directory, journal, problems, place, project, left } = await setup()
  await writeFile(join(place, "notes.txt"), "by the user")
  await left({ path: join(place, "notes.txt") })
  const name = temporaryName()
  await rename(place, project.path("elsewhere"))
  await writeFile(project.path("elsewhere", name), "by another program")
  await symlink(project.path("elsewhere"), place)
  await left({ path: join(place, name) })
  await left({ path: project.path("gone", name) })
  await journal.endOrphans(keepsNothing)
  expect((await readdir(project.path("elsewhere"))).sort()).toEqual([name, "notes.txt"].sort())
  expect(await readdir(directory)).toEqual([])
  expect(problems).toEqual([])
})

test("removes a backup whose content is in the original file or in the store", async () => {
  const { journal, problems, place, left } = await setup()
  const [linked, kept] = [join(place, temporaryName()), join(place, temporaryName())]
  await writeFile(join(place, "a"), "old")
  linkSync(join(place, "a"), linked)
  copyFileSync(linked, kept)
  await left({ path: linked, backupOf: join(place, "a") })
  await left({ path: kept, backupOf: join(place, "b") })
  const asked: string[] = []
  await journal.endOrphans(async (path) => {
    asked.push(await readFile(path, "utf8"))
    return true
  })
  expect(await readdir(place)).toEqual(["a"])
  expect(asked).toEqual(["old"])
  expect(problems).toEqual([])
})

test("keeps a backup that is the only copy, and reports it once", async () => {
  const { journal, problems, place, left } = await setup()
  const backup = join(place, temporaryName())
  await writeFile(join(place, "a"), "new")
  await writeFile(backup, "old")
  await left({ path: backup, backupOf: join(place, "a") })
  for (let time = 0; time < 2; time += 1) await journal.endOrphans(keepsNothing)
  expect(await readFile(backup, "utf8")).toBe("old")
  expect(problems).toEqual([
    expect.stringContaining(`${backup} contains the old content of ${join(place, "a")}`),
  ])
})

test("reports a file that cannot be removed, and keeps its record", async () => {
  const { directory, journal, problems, place } = await setup()
  const path = join(place, temporaryName())
  const record = journal.track({ path, backupOf: join(place, "a.txt") })
  // A directory that is not empty cannot be removed as a file.
  await mkdir(path)
  await removeTemporary(path, record)
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain(`Cannot remove the temporary file ${path}`)
  expect(problems[0]).toContain(`the old content of ${join(place, "a.txt")}`)
  expect(await readdir(directory)).toHaveLength(1)
})
