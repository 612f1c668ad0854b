import { existsSync } from "node:fs"
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
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

/** Writes the record of a process that is gone. */
async function writeDead(record: { path: string; stamp?: string }): Promise<void> {
  const owner = { pid: 2 ** 31 - 2, startTime: 1, bootID: "an earlier one" }
  await mkdir(project.path("journal"), { recursive: true })
  await writeFile(project.path("journal/2147483646-x.json"), JSON.stringify({ owner, id: "x", ...record }))
}

describe("placeholders", () => {
  test("keeps a directory that is unrecorded or was created again", async () => {
    const path = project.path(".git")
    await mkdir(path)
    await mkdir(project.path(".tackle"))
    await writeDead({ path, stamp: "1-1" })
    await openJournal().endOrphans()
    expect((await readdir(project.directory)).sort()).toEqual([".git", ".tackle", "journal"])
    expect(await readdir(project.path("journal"))).toEqual([])
  })

  test("removes a directory whose process was killed while it created it", async () => {
    await mkdir(project.path(".git"))
    await writeDead({ path: project.path(".git") })
    await openJournal().endOrphans()
    expect(await readdir(project.directory)).toEqual(["journal"])
  })

  test("keeps an empty directory and a file that existed before the command", async () => {
    await mkdir(project.path(".git"))
    await writeFile(project.path(".tackle"), "")
    const absent = [project.path(".git"), project.path(".tackle")]
    createPlaceholders(openJournal()).hold({ ...none, absent })()
    expect((await readdir(project.directory)).sort()).toEqual([".git", ".tackle", "journal"])
  })

  test("shares a directory between engines and between commands", async () => {
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

  test("does not own a directory that the user created again", async () => {
    const path = project.path(".git")
    createPlaceholders(openJournal()).hold({ ...none, absent: [path] })
    expect(openJournal().existing()).toEqual([path])
    await rmdir(path)
    // The inode number can be the same, and the file system clock has a resolution of some milliseconds.
    await delay(30)
    await mkdir(path)
    expect(openJournal().existing()).toEqual([])
  })
})
