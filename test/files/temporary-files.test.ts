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
  temporaryName,
} from "../../src/files/temporary-files.ts"
import { temporaryProject } from "../../src/testing/project.ts"

async function setup() {
  const project = await temporaryProject()
  onTestFinished(() => project.remove())
  const directory = project.path("book")
  const faults: string[] = []
  const book = createTemporaryFileJournal(directory, (message, error) =>
    faults.push(`${message}: ${String(error)}`),
  )
  const place = project.path("work")
  await mkdir(place)
  const child = spawn("true")
  await once(child, "exit")
  let count = 0
  /** As a process that is gone has written it. */
  const left = (file: TemporaryFile) =>
    writeFile(
      join(directory, `${child.pid}-${count++}.json`),
      JSON.stringify({ owner: { pid: child.pid }, ...file }),
    )
  await mkdir(directory)
  return { project, directory, book, faults, place, left }
}

const keepsNothing = async () => false

test("what a killed process wrote down goes, and nothing that only looks like it", async () => {
  const { directory, book, faults, place, left } = await setup()
  const [named, likeIt, ours] = [temporaryName(), temporaryName(), temporaryName()].map((name) =>
    join(place, name),
  )
  for (const path of [named, likeIt, ours]) await writeFile(path ?? "", "new")
  await left({ path: named ?? "" })
  const record = book.track({ path: ours ?? "" })
  await book.endOrphans(keepsNothing)
  expect([named, likeIt, ours].map((path) => existsSync(path ?? ""))).toEqual([false, true, true])
  expect(await readdir(directory)).toHaveLength(1)
  record.done()
  expect(await readdir(directory)).toEqual([])
  expect(faults).toEqual([])
})

test("a record that names another file, or a place that is another by now, removes nothing", async () => {
  const { directory, book, faults, place, project, left } = await setup()
  await writeFile(join(place, "notes.txt"), "the person's")
  await left({ path: join(place, "notes.txt") })
  const name = temporaryName()
  await rename(place, project.path("elsewhere"))
  await writeFile(project.path("elsewhere", name), "of somebody")
  await symlink(project.path("elsewhere"), place)
  await left({ path: join(place, name) })
  await left({ path: project.path("gone", name) })
  await book.endOrphans(keepsNothing)
  expect((await readdir(project.path("elsewhere"))).sort()).toEqual([name, "notes.txt"].sort())
  expect(await readdir(directory)).toEqual([])
  expect(faults).toEqual([])
})

test("old bytes go where they are in their place, or kept", async () => {
  const { book, faults, place, left } = await setup()
  const [linked, kept] = [join(place, temporaryName()), join(place, temporaryName())]
  await writeFile(join(place, "a"), "old")
  linkSync(join(place, "a"), linked)
  copyFileSync(linked, kept)
  await left({ path: linked, backupOf: join(place, "a") })
  await left({ path: kept, backupOf: join(place, "b") })
  const asked: string[] = []
  await book.endOrphans(async (path) => {
    asked.push(await readFile(path, "utf8"))
    return true
  })
  expect(await readdir(place)).toEqual(["a"])
  expect(asked).toEqual(["old"])
  expect(faults).toEqual([])
})

test("old bytes that are nowhere else stay, and are told of once", async () => {
  const { book, faults, place, left } = await setup()
  const backup = join(place, temporaryName())
  await writeFile(join(place, "a"), "new")
  await writeFile(backup, "old")
  await left({ path: backup, backupOf: join(place, "a") })
  for (let time = 0; time < 2; time += 1) await book.endOrphans(keepsNothing)
  expect(await readFile(backup, "utf8")).toBe("old")
  expect(faults).toEqual([
    expect.stringContaining(`${backup} contains the old content of ${join(place, "a")}`),
  ])
})

test("a file that failed is told with its path and what it holds, and stays written down", async () => {
  const { directory, book, faults, place } = await setup()
  const path = join(place, temporaryName())
  const record = book.track({ path, backupOf: join(place, "a.txt") })
  // No file can be removed as a directory with something in it.
  await mkdir(path)
  await removeTemporary(path, record)
  expect(faults).toHaveLength(1)
  expect(faults[0]).toContain(`Cannot remove the temporary file ${path}`)
  expect(faults[0]).toContain(`the old content of ${join(place, "a.txt")}`)
  expect(await readdir(directory)).toHaveLength(1)
})
