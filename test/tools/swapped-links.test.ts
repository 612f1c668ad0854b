import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import {
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { writeAtomic } from "../../src/files/atomic-write.ts"
import { commitFiles, type FileStep } from "../../src/files/commit-files.ts"
import { untracked } from "../../src/files/temporary-files.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { applyPatchTool } from "../../src/tools/apply-patch/apply-patch.ts"
import { readTool } from "../../src/tools/read.ts"
import { writeTool } from "../../src/tools/write.ts"
import { isInside, realPath } from "../../src/util/paths.ts"

/**
 * Attempts of each kind. Without pinned paths dozens of them escape. How many succeed or are refused depends on the
 * scheduler, so no test counts them: the tests below check each outcome without a second process.
 */
const rounds = 1_000

let root: string
let outside: string
let project: string
let swapper: ChildProcess | undefined

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "tackle-swap-")))
  outside = join(root, "outside")
  project = join(root, "project")
  await mkdir(join(project, "place"), { recursive: true })
  await mkdir(outside)
  await writeFile(join(project, "place/file.txt"), "inside\n")
  await writeFile(join(outside, "file.txt"), "outside\n")
})

afterEach(async () => {
  swapper?.kill("SIGKILL")
  await rm(root, { recursive: true, force: true, maxRetries: 5 })
})

/** Makes `place` alternate between a directory of the project and a symlink that leads out of it. */
async function startSwapping(): Promise<void> {
  const script = join(import.meta.dirname, "swap-links.ts")
  const args = [script, join(project, "place"), join(project, "aside"), outside]
  swapper = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
  if (swapper.stdout) await once(swapper.stdout, "data")
}

/** Creates a context that decides as the engine does, by the current targets of paths. */
function guarded() {
  return fakeContext({
    directory: project,
    onAsk: async ({ patterns }) => {
      if (patterns.some((path) => isInside(realPath(path), outside))) throw new Error("refused: outside")
    },
  })
}

test("read never shows the target of a swapped symlink", async () => {
  const tool = await readTool.init()
  await startSwapping()
  for (let round = 0; round < rounds; round += 1) {
    const output = await tool.execute({ filePath: "place/file.txt" }, guarded()).then(
      (result) => result.output,
      () => "refused",
    )
    expect(output).not.toContain("outside\n")
  }
})

test("read and write work on the directory and are refused on the symlink", async () => {
  const [read, write] = [await readTool.init(), await writeTool.init()]
  expect((await read.execute({ filePath: "place/file.txt" }, guarded())).output).toContain("inside")
  await write.execute({ filePath: "place/new.txt", content: "x" }, guarded())
  expect((await readdir(join(project, "place"))).sort()).toEqual(["file.txt", "new.txt"])
  await rename(join(project, "place"), join(project, "aside"))
  await symlink(outside, join(project, "place"))
  await expect(read.execute({ filePath: "place/file.txt" }, guarded())).rejects.toThrow("refused: outside")
  await expect(write.execute({ filePath: "place/new.txt", content: "x" }, guarded())).rejects.toThrow(
    "refused: outside",
  )
  expect(await readdir(outside)).toEqual(["file.txt"])
})

test("write changes nothing behind a swapped symlink", async () => {
  const tool = await writeTool.init()
  await startSwapping()
  for (let round = 0; round < rounds; round += 1) {
    const filePath = round % 2 ? `place/new-${round}.txt` : `place/deep-${round}/er/new.txt`
    await tool.execute({ filePath, content: "x" }, guarded()).catch(() => {})
  }
  expect(await readdir(outside)).toEqual(["file.txt"])
  expect(await readFile(join(outside, "file.txt"), "utf8")).toBe("outside\n")
})

test("bytes are written to the checked path or not at all", async () => {
  const path = (round: number) =>
    join(project, "place", round % 2 ? `new-${round}.txt` : `deep-${round}/new.txt`)
  for (const round of [rounds, rounds + 1]) await writeAtomic(path(round), Buffer.from("x"), untracked)
  await startSwapping()
  for (let round = 0; round < rounds; round += 1)
    await writeAtomic(path(round), Buffer.from("x"), untracked).catch(() => {})
  expect(await readdir(outside)).toEqual(["file.txt"])
})

test("apply_patch changes nothing behind a swapped symlink", async () => {
  const file = (name: string) => join(project, "place", name)
  const steps = (round: number): FileStep[] => [
    { path: file(`new-${round}.txt`), exists: false, bytes: Buffer.from("x") },
    {
      path: file(`deep-${round}/er/new.txt`),
      exists: false,
      bytes: Buffer.from("x"),
      like: file("file.txt"),
    },
    { path: file("file.txt"), exists: true, bytes: Buffer.from("inside\n") },
    // Every other patch fails at its end, so that it is rolled back.
    { path: file(round % 2 ? `new-${round}.txt` : "none"), exists: true, bytes: undefined },
  ]
  // Without a second process, the first patch succeeds and the second is rolled back.
  await commitFiles(steps(rounds + 1), untracked)
  await expect(commitFiles(steps(rounds), untracked)).rejects.toThrow("ENOENT")
  await startSwapping()
  for (let round = 0; round < rounds; round += 1) await commitFiles(steps(round), untracked).catch(() => {})
  expect(await readdir(outside)).toEqual(["file.txt"])
  expect(await readFile(join(outside, "file.txt"), "utf8")).toBe("outside\n")
})

/** While the user is asked, `place` becomes a symlink that leads out of the project. */
function swappedWhileAsked() {
  return fakeContext({
    directory: project,
    onAsk: async () => {
      await rm(join(project, "place"), { recursive: true })
      await symlink(outside, join(project, "place"))
    },
  })
}

test("read does not follow a symlink created while the user is asked", async () => {
  const read = (await readTool.init()).execute({ filePath: "place/file.txt" }, swappedWhileAsked())
  await expect(read).rejects.toThrow(/no longer leads to the file for which permission was granted/)
})

test("write does not follow a symlink created while the user is asked", async () => {
  const write = (await writeTool.init()).execute(
    { filePath: "place/new.txt", content: "x" },
    swappedWhileAsked(),
  )
  await expect(write).rejects.toThrow(/changed after this call read it/)
  expect(await readdir(outside)).toEqual(["file.txt"])
})

test.each([
  ["at its end", "place/new.txt", /ENOTDIR/],
  ["in its middle", "place/sub/new.txt", /no longer leads to the file for which permission was granted/],
  ["above new directories", "place/sub/deep/er/new.txt", /no longer leads to the file/],
])("nothing is written through a link in a resolved directory, %s", async (_, name, reason) => {
  await mkdir(join(outside, "sub"))
  await rename(join(project, "place"), join(project, "aside"))
  await symlink(outside, join(project, "place"))
  const [path, bytes] = [join(project, name), Buffer.from("x")]
  await expect(writeAtomic(path, bytes, untracked)).rejects.toThrow(reason)
  await expect(commitFiles([{ path, exists: false, bytes }], untracked)).rejects.toThrow(reason)
  expect((await readdir(outside, { recursive: true })).sort()).toEqual(["file.txt", "sub"])
})

test("permission for a symlink includes its target", async () => {
  await symlink(join(project, "place/file.txt"), join(project, "link.txt"))
  const ctx = fakeContext({ directory: project })
  await (await readTool.init()).execute({ filePath: "link.txt" }, ctx)
  expect(ctx.asked[0]?.patterns).toEqual([join(project, "link.txt"), join(project, "place/file.txt")])
})

test.each([
  ["a second name of a protected file", async (secret: string, path: string) => link(secret, path)],
  ["the protected file itself", async (secret: string, path: string) => rename(secret, path)],
])("read does not show %s that replaced a file during the permission request", async (_, exchange) => {
  const [path, secret] = [join(project, "notes.txt"), join(project, ".env")]
  await writeFile(path, "notes\n")
  await writeFile(secret, "KEY=hidden\n")
  const tool = await readTool.init()
  const read = (onAsk: () => Promise<void>) =>
    tool.execute({ filePath: path }, fakeContext({ directory: project, onAsk }))
  expect((await read(async () => {})).output).toContain("notes")
  await expect(
    read(async () => {
      await rm(path)
      await exchange(secret, path)
    }),
  ).rejects.toThrow(/no longer leads to the file for which permission was granted/)
})

test.each([
  ["changes", "Update File: place/file.txt\n@@\n-inside\n+changed"],
  ["makes", "Add File: place/new.txt\n+x"],
  ["takes away", "Delete File: place/file.txt"],
  ["moves", "Update File: place/file.txt\n*** Move to: place/other.txt\n@@\n-inside\n+changed"],
])(
  "a patch that %s a file changes nothing if the directory of the file became a link",
  async (_, section) => {
    const ctx = swappedWhileAsked()
    await (await readTool.init()).execute(
      { filePath: "place/file.txt" },
      fakeContext({ directory: project, files: ctx.files }),
    )
    const patchText = `*** Begin Patch\n*** ${section}\n*** End Patch`
    await writeFile(join(outside, "file.txt"), "inside\n")
    await expect((await applyPatchTool.init()).execute({ patchText }, ctx)).rejects.toThrow(
      /changed after this call read it|leads to another file|does not exist/,
    )
    expect(await readdir(outside)).toEqual(["file.txt"])
    expect(await readFile(join(outside, "file.txt"), "utf8")).toBe("inside\n")
  },
)
