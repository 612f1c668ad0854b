import { existsSync } from "node:fs"
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, expect, test } from "vitest"
import {
  createPlaceholderJournal,
  createPlaceholders,
  type PlaceholderJournal,
} from "../../src/sandbox/placeholders.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

let project: TemporaryProject
let problems: unknown[]
beforeEach(async () => {
  project = await temporaryProject()
  problems = []
})
afterEach(async () => {
  expect(problems).toEqual([])
  await project.remove()
})

const none = { writable: [], readOnly: [], hidden: [], absent: [] }

function openJournal(): PlaceholderJournal {
  return createPlaceholderJournal(project.path("journal"), (_, error) => problems.push(error))
}

/** Writes down what a process that is gone had made. */
async function writeDead(record: { path: string; stamp?: string }): Promise<void> {
  const owner = { pid: 2 ** 31 - 2, startTime: 1, bootID: "an earlier one" }
  await mkdir(project.path("journal"), { recursive: true })
  await writeFile(project.path("journal/2147483646-x.json"), JSON.stringify({ owner, id: "x", ...record }))
}

test("a directory that is not the one that was made stays, and so does what nobody wrote down", async () => {
  const path = project.path(".git")
  await mkdir(path)
  await mkdir(project.path(".tackle"))
  await writeDead({ path, stamp: "1-1" })
  await openJournal().endOrphans()
  expect((await readdir(project.directory)).sort()).toEqual([".git", ".tackle", "journal"])
  expect(await readdir(project.path("journal"))).toEqual([])
})

test("one whose maker was killed while it made it goes", async () => {
  await mkdir(project.path(".git"))
  await writeDead({ path: project.path(".git") })
  await openJournal().endOrphans()
  expect(await readdir(project.directory)).toEqual(["journal"])
})

test("what lies there empty before a command is not ours afterwards, and a file neither", async () => {
  await mkdir(project.path(".git"))
  await writeFile(project.path(".tackle"), "")
  const absent = [project.path(".git"), project.path(".tackle")]
  createPlaceholders(openJournal()).hold({ ...none, absent })()
  expect((await readdir(project.directory)).sort()).toEqual([".git", ".tackle", "journal"])
})

test("two engines hold one directory, and so do two commands of one whose bounds differ", async () => {
  const path = project.path(".git")
  const [one, other] = [createPlaceholders(openJournal()), createPlaceholders(openJournal())]
  const releases = [
    one.hold({ ...none, absent: [path] }),
    one.hold({ ...none, readOnly: [path] }),
    other.hold({ ...none, writable: [path], absent: [project.path(".git/hooks")] }),
  ]
  for (const release of releases) {
    expect(existsSync(path)).toBe(true)
    release()
  }
  expect(existsSync(path)).toBe(false)
  expect(await readdir(project.path("journal"))).toEqual([])
})

test("one that the person took away and made anew is theirs", async () => {
  const path = project.path(".git")
  createPlaceholders(openJournal()).hold({ ...none, absent: [path] })
  expect(openJournal().existing()).toEqual([path])
  await rmdir(path)
  // It may get the same number; the clock of the file system has steps of some milliseconds.
  await delay(30)
  await mkdir(path)
  expect(openJournal().existing()).toEqual([])
})
