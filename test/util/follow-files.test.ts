import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { followFiles } from "../../src/util/follow-files.ts"

/** A file that was read when it was followed, and how often it was listed and read since. */
async function followed({ since = Date.now() }: { since?: number } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "follow-"))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, "one.md")
  await writeFile(file, "one")
  const counts = { listed: 0, read: 0 }
  // Only the file is watched, because its directory has just changed.
  const files = followFiles<string>({
    watched() {
      counts.listed++
      return [file]
    },
    async read() {
      counts.read++
      return "read again"
    },
    onFailure: () => "failed",
    initial: "begun",
    begun: { since, files: [file] },
  })
  return { file, files, counts }
}

/** Waits longer than the time for which files read at startup are not checked. */
const rested = () => sleep(450)

test("does not check files that were just read at startup", async () => {
  const { files, counts } = await followed()
  expect(await files.read()).toBe("begun")
  expect(counts).toEqual({ listed: 0, read: 0 })
})

test("checks later, and does not read unchanged files", async () => {
  const { files, counts } = await followed({ since: Date.now() + 60_000 })
  await rested()
  expect(await files.read()).toBe("begun")
  expect(files.changed()).toBe(false)
  expect(counts).toEqual({ listed: 1, read: 0 })
})

test.each([
  ["written", (file: string) => writeFile(file, "two")],
  ["gone", (file: string) => rm(file)],
])("notices a file that was %s before the first check", async (_what, change) => {
  const { file, files, counts } = await followed({ since: Date.now() + 60_000 })
  await change(file)
  // The time of the file is in the future, so the change is later than the start.
  await utimes(file, new Date(Date.now() + 120_000), new Date(Date.now() + 120_000)).catch(() => {})
  await rested()
  expect(files.changedLately()).toBe(true)
  expect(await files.read()).toBe("read again")
  expect(files.changed()).toBe(false)
  expect(counts.read).toBe(1)
})

test("notices every change immediately after the first check", async () => {
  const { file, files } = await followed({ since: Date.now() + 60_000 })
  await rested()
  expect(await files.read()).toBe("begun")
  await rm(file)
  expect(await files.read()).toBe("read again")
})
