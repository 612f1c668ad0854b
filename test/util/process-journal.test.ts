import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { type RecordTree, startProcess } from "../../src/util/process.ts"
import { createProcessJournal } from "../../src/util/process-journal.ts"

async function createBook() {
  const root = await mkdtemp(join(tmpdir(), "tackle-book-"))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const directory = join(root, "processes")
  const faults: string[] = []
  const book = createProcessJournal(directory, (message) => faults.push(message))
  return { directory, book, faults }
}

async function sleeper(record?: RecordTree) {
  const process = await startProcess({ argv: ["sleep", "300"], cwd: "/", env: {}, onOutput() {}, record })
  onTestFinished(() => process.kill())
  return process
}

/** Returns the id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn("true")
  await once(child, "exit")
  return child.pid ?? 0
}

test.skipIf(process.platform !== "linux")("ends only trees of processes that are gone", async () => {
  const { directory, book, faults } = await createBook()
  await book.endOrphans()
  expect(existsSync(directory)).toBe(false)

  const [ours, theirs, struck] = [await sleeper(book.add), await sleeper(), await sleeper(book.add)]
  struck.removeRecords()
  await writeFile(
    join(directory, "gone.json"),
    JSON.stringify({ owner: { pid: await deadPid() }, tree: theirs.identity }),
  )
  await book.endOrphans()
  expect((await theirs.exited).signal).toBe("SIGTERM")
  expect([ours.running(), struck.running()]).toEqual([true, true])
  const left = (await readdir(directory)).sort()
  const trees = await Promise.all(
    left.map(async (name) => JSON.parse(await readFile(join(directory, name), "utf8")).tree),
  )
  const { mark, bootID } = ours.identity ?? {}
  expect(trees).toEqual([ours.identity, { mark, bootID }])

  book.clear()
  expect(await readdir(directory)).toEqual([])
  expect(faults).toEqual([])
})

test.skipIf(process.platform !== "linux")(
  "finds a started but unrecorded tree by its intent, and ignores an intent without processes",
  async () => {
    const { directory, book, faults } = await createBook()
    await mkdir(directory)
    const intents: unknown[] = []
    const started = await sleeper((tree) => {
      if (tree.group === undefined) intents.push(tree)
      return () => {}
    })
    const bystander = await sleeper()
    const never = { mark: "TACKLE_PROCESS=prc_0mk3v1f2a000h2msdhe835", bootID: started.identity?.bootID }
    for (const [index, tree] of [...intents, never].entries())
      await writeFile(
        join(directory, `${index}.json`),
        JSON.stringify({ owner: { pid: await deadPid() }, tree }),
      )
    await book.endOrphans()
    expect((await started.exited).signal).toBe("SIGTERM")
    expect(bystander.running()).toBe(true)
    expect(await readdir(directory)).toEqual([])
    expect(faults).toEqual([])
  },
)

test.skipIf(process.platform !== "linux")("removes invalid records without ending anything", async () => {
  const { directory, book, faults } = await createBook()
  await mkdir(directory)
  const bystander = await sleeper()
  const owner = { pid: await deadPid() }
  const texts = [
    '{"owner',
    "null",
    JSON.stringify({ owner, tree: { ...bystander.identity, group: -1 } }),
    JSON.stringify({ owner, tree: { ...bystander.identity, mark: "" } }),
    JSON.stringify({ owner, tree: { ...bystander.identity, bootID: "another" } }),
  ]
  for (const [index, text] of texts.entries())
    await writeFile(join(directory, `${owner.pid}-${index}.json`), text)
  // The process may still write the rest of the file.
  const half = `${process.pid}-half.json`
  await writeFile(join(directory, half), "")
  await book.endOrphans()
  expect(bystander.running()).toBe(true)
  expect(await readdir(directory)).toEqual([half])
  expect(faults).toEqual([])
})

test("reports a directory that cannot be created once and continues", async () => {
  const { directory, book, faults } = await createBook()
  await writeFile(directory, "no directory")
  const process = await sleeper(book.add)
  expect(() => process.removeRecords()).not.toThrow()
  expect(faults).toHaveLength(process.identity ? 1 : 0)
})
