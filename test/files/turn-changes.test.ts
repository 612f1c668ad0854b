import { chmodSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import { putBack } from "../../src/files/put-back.ts"
import { defaultScanLimits, type ScanLimits } from "../../src/files/scan.ts"
import { untracked } from "../../src/files/temporary-files.ts"
import { createTurnChanges, type TurnRecord } from "../../src/files/turn-changes.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { defaultContentLimits, hashOf } from "../../src/store/content-store.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

const signal = new AbortController().signal

/** A turn in a project of files that each hold `0`, with the records that it stored. */
async function startTurn(
  names: string[],
  limits: Partial<ScanLimits> = {},
  meet: (record: TurnRecord) => void = () => {},
) {
  const project: TemporaryProject = await temporaryProject(
    Object.fromEntries(names.map((name) => [name, "0"])),
  )
  const records: TurnRecord[] = []
  const contents = createContentDirectory(project.path(".data"))
  const changes = createTurnChanges({
    contents,
    worktree: project.directory,
    leaveOut: project.path(".data"),
    limits: { ...defaultScanLimits, ...limits },
    async save(record) {
      meet(record)
      records.push(record)
    },
    note(record) {
      meet(record)
      records.push(record)
    },
  })
  return { project, records, contents, changes }
}

test("records each change of concurrent commands once, and undoes to the state before the first", async () => {
  const { project, records, contents, changes } = await startTurn(["a", "b"])
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const one = changes.command("make one", signal, async () => {
    await first.promise
    writeFileSync(project.path("a"), "1")
  })
  const two = changes.command("make two", signal, async () => {
    await second.promise
    writeFileSync(project.path("a"), "2")
    writeFileSync(project.path("b"), "2")
  })
  first.resolve()
  await one
  second.resolve()
  await two
  const { files } = records.at(-1) ?? { files: [] }
  expect(files.map(({ path, fixed }) => [path, fixed])).toEqual([
    [project.path("a"), undefined],
    [project.path("b"), undefined],
  ])
  await putBack(files, { direction: "undo", contents, trackTemporary: untracked })
  expect([await project.read("a"), await project.read("b")]).toEqual(["0", "0"])
  await project.remove()
})

test("records each change once if commands end at the same time", async () => {
  const names = ["a", "b", "c", "d", "e"]
  const { project, records, contents, changes } = await startTurn(names)
  const { promise: end, resolve } = Promise.withResolvers<void>()
  const commands = names.map((name) =>
    changes.command(`make ${name}`, signal, async () => {
      await end
      writeFileSync(project.path(name), `from ${name}`)
    }),
  )
  resolve()
  await Promise.all(commands)
  const { files } = records.at(-1) ?? { files: [] }
  expect(files.map(({ path, fixed }) => [path, fixed])).toEqual(
    names.map((name) => [project.path(name), undefined]),
  )
  await putBack(files, { direction: "undo", contents, trackTemporary: untracked })
  for (const name of names) expect(await project.read(name)).toBe("0")
  await project.remove()
})

test("records the changes of a command that fails", async () => {
  const { project, records, changes } = await startTurn(["a"])
  const work = async () => {
    rmSync(project.path("a"))
    throw new Error("killed")
  }
  await expect(changes.command("make", signal, work)).rejects.toThrow("killed")
  expect(records.at(-1)?.files).toMatchObject([{ path: project.path("a"), before: {} }])
  const aborted = AbortSignal.abort()
  await expect(changes.command("make", aborted, async () => "never")).rejects.toThrow()
  expect(await changes.command("make", signal, async () => "continues")).toBe("continues")
  await project.remove()
})

test.each<[string, (root: string) => void]>([
  ["a file", (directory) => writeFileSync(directory, "1")],
  ["a link to itself", (directory) => symlinkSync(directory, directory)],
])("records the files of a directory that a command replaces by %s", async (_, replace) => {
  const { project, records, changes } = await startTurn(["x/a", "x/y/b"])
  const work = async () => {
    rmSync(project.path("x"), { recursive: true })
    replace(project.path("x"))
    return "done"
  }
  expect(await changes.command("make", signal, work)).toBe("done")
  const { files = [], unseen } = records.at(-1) ?? {}
  const deleted = files.filter(({ before, after }) => before && !after).map(({ path }) => path)
  expect(deleted.toSorted()).toEqual([project.path("x/a"), project.path("x/y/b")])
  expect(unseen).toEqual([])
  await project.remove()
})

test.skipIf(process.getuid?.() === 0)(
  "keeps the result of a command that makes a directory unreadable, and reports the scan as incomplete",
  async () => {
    const { project, records, changes } = await startTurn(["a", "x/b"])
    const work = async () => {
      writeFileSync(project.path("a"), "1")
      chmodSync(project.path("x"), 0)
      return "done"
    }
    expect(await changes.command("make", signal, work)).toBe("done")
    expect(records.at(-1)?.files).toMatchObject([{ path: project.path("a") }])
    expect(records.at(-1)?.unseen).toEqual([
      `make: the scan is incomplete: cannot read ${project.path("x")}, ${project.path("x/b")}`,
    ])
    expect(
      await changes.command("make again", signal, async () => writeFileSync(project.path("c"), "1")),
    ).toBe(undefined)
    expect(records.at(-1)?.files.map(({ path }) => path)).toEqual([project.path("a"), project.path("c")])
    chmodSync(project.path("x"), 0o755)
    await project.remove()
  },
)

test("describes changes beyond the limits, and does not restore a file whose content was not stored", async () => {
  const many = await startTurn(["a", "b", "c"], { entries: 2 })
  await many.changes.command("make many", signal, async () => writeFileSync(many.project.path("c"), "1"))
  expect(many.records.at(-1)).toMatchObject({
    files: [],
    unseen: [expect.stringContaining("make many: only 2")],
  })
  await many.project.remove()

  const large = await startTurn(["a"], { fileBytes: 0 })
  await large.changes.command("make", signal, async () => writeFileSync(large.project.path("a"), "11"))
  const { files } = large.records.at(-1) ?? { files: [] }
  await expect(
    putBack(files, { direction: "undo", contents: large.contents, trackTemporary: untracked }),
  ).rejects.toThrow("too large")
  await large.project.remove()
})

test("restores only the other files if a current content is too large to store", async () => {
  const { project, records, changes } = await startTurn(["a", "b"])
  await changes.command("make", signal, async () => {
    writeFileSync(project.path("a"), "large")
    writeFileSync(project.path("b"), "1")
  })
  const { files } = records.at(-1) ?? { files: [] }
  const limits = { ...defaultContentLimits, fileBytes: 4 }
  const contents = createContentDirectory(project.path(".data"), limits)
  const refused = [{ path: project.path("a"), why: "too-large" }]
  const undo = (others: boolean) =>
    putBack(files, { direction: "undo", contents, trackTemporary: untracked, others })
  await expect(undo(false)).rejects.toMatchObject({ refused })
  expect(await undo(true)).toMatchObject({ refused, files: [{ path: project.path("b"), kind: "restored" }] })
  expect([await project.read("a"), await project.read("b")]).toEqual(["large", "0"])
  await project.remove()
})

test("reports a mode that cannot be set, and returns the restored files", async () => {
  const { project, records, contents, changes } = await startTurn(["a", "b"])
  chmodSync(project.path("b"), 0o644)
  await changes.command("make", signal, async () => {
    writeFileSync(project.path("a"), "1")
    chmodSync(project.path("b"), 0o755)
  })
  const { files, problems } = await putBack(records.at(-1)?.files ?? [], {
    direction: "undo",
    contents,
    // Another program removes the file while the contents are restored.
    trackTemporary(temporary) {
      rmSync(project.path("b"), { force: true })
      return untracked(temporary)
    },
  })
  expect(await project.read("a")).toBe("0")
  expect(files.map(({ path }) => path)).toContain(project.path("a"))
  expect(problems).toEqual([expect.stringMatching(/^Cannot set the mode of .*b to 644: ENOENT/)])
  await project.remove()
})

test("names the full disk, not the user, if old content could not be stored", async () => {
  const { project, records, contents, changes } = await startTurn(["a", "b"])
  const put = contents.put
  contents.put = async (bytes) => {
    if (bytes.toString() === "0")
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" })
    return put(bytes)
  }
  const work = async () => {
    writeFileSync(project.path("a"), "1")
    return "done"
  }
  expect(await changes.command("make", signal, work)).toBe("done")
  const { files = [], unseen } = records.at(-1) ?? {}
  expect(unseen).toEqual([
    expect.stringMatching(/^make: the old content of .*a could not be stored \(ENOSPC/),
  ])
  const undone = putBack(files, { direction: "undo", contents, trackTemporary: untracked })
  await expect(undone).rejects.toThrow(/a: its old content could not be stored/)
  await project.remove()
})

test("forgets a change that a tool could not make", async () => {
  const { project, records, changes } = await startTurn(["a"])
  const path = project.path("a")
  const step = (before: string, after: string) => ({
    before: [{ path, bytes: Buffer.from(before) }],
    after: [{ path, bytes: Buffer.from(after) }],
  })
  await changes.files(step("0", "1"), async () => writeFileSync(path, "1"))
  const failing = changes.files(step("1", "2"), () => Promise.reject(new Error("ENOSPC")))
  await expect(failing).rejects.toThrow("ENOSPC")
  expect(records.at(-1)?.files).toMatchObject([{ path, after: { hash: hashOf(Buffer.from("1")) } }])
  const created = {
    before: [{ path: project.path("new"), bytes: undefined }],
    after: [{ path: project.path("new"), bytes: Buffer.from("n") }],
  }
  await expect(changes.files(created, () => Promise.reject(new Error("ENOSPC")))).rejects.toThrow("ENOSPC")
  expect(records.at(-1)?.files.map(({ path }) => path)).toEqual([path])
  await project.remove()
})

test("records a tool's change before it is made", async () => {
  const { project, records, contents, changes } = await startTurn(["a"])
  const path = project.path("a")
  const change = {
    before: [{ path, bytes: Buffer.from("0") }],
    after: [{ path, bytes: Buffer.from("1") }],
  }
  await changes.files(change, async () => {
    expect(records.at(-1)?.files).toMatchObject([{ path }])
    // If the process ended here, an undo would have nothing to restore and no conflict.
    const { files } = await putBack(records.at(-1)?.files ?? [], {
      direction: "undo",
      contents,
      trackTemporary: untracked,
    })
    expect(files).toEqual([])
  })
  await project.remove()
})

test("does not make a change that cannot be recorded, and undoes the others", async () => {
  let isFull = false
  const { project, records, contents, changes } = await startTurn(["a"], {}, () => {
    if (isFull) throw new Error("the disk is full")
  })
  const path = project.path("a")
  const change = (from: string, to: string) =>
    changes.files(
      { before: [{ path, bytes: Buffer.from(from) }], after: [{ path, bytes: Buffer.from(to) }] },
      async () => writeFileSync(path, to),
    )
  await change("0", "1")
  isFull = true
  await expect(change("1", "2")).rejects.toThrow("the disk is full")
  isFull = false
  await change("1", "3")
  const { files } = records.at(-1) ?? { files: [] }
  expect(files.map(({ fixed }) => fixed)).toEqual([undefined])
  await putBack(files, { direction: "undo", contents, trackTemporary: untracked })
  expect(await project.read("a")).toBe("0")
  await project.remove()
})
