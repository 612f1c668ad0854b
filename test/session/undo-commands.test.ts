import { spawnSync } from "node:child_process"
import { lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs"
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

/** Returns every file, link and empty directory below a directory, except those of git and Tackle. */
function treeOf(root: string, below = ""): Record<string, string> {
  const found: Record<string, string> = {}
  const entries = readdirSync(join(root, below), { withFileTypes: true })
  for (const entry of entries) {
    const name = join(below, entry.name)
    if (below === "" && [".git", ".data"].includes(entry.name)) continue
    const path = join(root, name)
    if (entry.isSymbolicLink()) found[name] = `-> ${readlinkSync(path)}`
    else if (entry.isFile())
      found[name] = `${(lstatSync(path).mode & 0o777).toString(8)} ${readFileSync(path, "latin1")}`
    else Object.assign(found, treeOf(root, name))
  }
  if (below !== "" && entries.length === 0) found[below] = "directory"
  return found
}

const files = {
  ".gitignore": "*.log\n",
  "a.txt": "A",
  "b.txt": "B",
  "run.sh": "#!",
  "src/x.ts": "X",
  "src/deep/y.ts": "Y",
}
const largeFile = { "big.bin": "\0".repeat(2_000_000) }

async function engineWith(commands: readonly string[]) {
  const script: Reply[] = [
    ...commands.map((command) => ({ calls: [{ name: "bash", arguments: { command } }] })),
    { text: "done" },
  ]
  // Only where it is used, because the engine reads it several times.
  const large = commands.some((command) => command.includes("big.bin")) ? largeFile : {}
  const options = { permission: { "*": "allow" }, sandbox: "off", files: { ...files, ...large } } as const
  const engine = await startEngine(script, options)
  symlinkSync("b.txt", engine.project.path("link"))
  spawnSync("git", ["init", "-q"], { cwd: engine.project.directory })
  spawnSync("git", ["add", "-A"], { cwd: engine.project.directory })
  return engine
}

test.each([
  ["mv a.txt c.txt"],
  ["mv a.txt src/"],
  ["mv a.txt b.txt"],
  ["mv a.txt t; mv b.txt a.txt; mv t b.txt"],
  ["git mv a.txt renamed.txt"],
  ["git mv src lib"],
  ["mv src lib"],
  ["mv src lib; echo more >> lib/x.ts; rm lib/deep/y.ts"],
  ["mkdir -p p/q; mv src p/q/"],
  ["mv big.bin big2.bin"],
  ["mv src/deep/y.ts src/y.ts; rmdir src/deep"],
  ["ln -s a.txt l"],
  ["ln -s src l"],
  ["ln -s missing l"],
  ["ln a.txt hard.txt"],
  ["ln -sf a.txt link"],
  ["rm link"],
  ["rm link; echo file > link"],
  ["mv link moved"],
  ["rm a.txt; ln -s b.txt a.txt"],
  ["rm -r src; ln -s . src"],
  ["rm -r src; echo file > src"],
  ["mv src a; ln -s a src"],
  ["rm a.txt; mkdir a.txt; echo 1 > a.txt/one; mkdir a.txt/d; echo 2 > a.txt/d/two"],
  ["rm a.txt; mkdir a.txt"],
  ["echo 1 > new; mkdir -p n/e/w; echo 2 > n/e/w/file"],
  ["head -c 3000000 /dev/zero > large"],
  ["cp -r src copy; cp -p a.txt copy/"],
  ["cp a.txt /tmp/$$; mv /tmp/$$ fresh.txt"],
  ["chmod 755 run.sh; mv run.sh go.sh"],
  ["sed -i s/A/Z/ a.txt; mv a.txt z.txt"],
  ["rm -r src a.txt b.txt"],
  ["mv a.txt '.hidden name'"],
])("undoes and redoes exactly: %s", async (command) => {
  await using engine = await engineWith([command])
  const root = engine.project.directory
  const before = treeOf(root)
  const { session } = await run(engine)
  const after = treeOf(root)
  expect(after).not.toEqual(before)
  for (let round = 0; round < 2; round += 1) {
    expect((await session.undo()).unseen).toEqual([])
    expect(treeOf(root)).toEqual(before)
    await session.redo()
    const empty = Object.entries(after).filter(([, text]) => text !== "directory")
    expect(Object.entries(treeOf(root))).toEqual(expect.arrayContaining(empty))
  }
})

test("undoes renames over several commands of a turn", async () => {
  await using engine = await engineWith(["mv a.txt c.txt", "mv c.txt d.txt", "mv src lib", "mv lib lib2"])
  const root = engine.project.directory
  const before = treeOf(root)
  const { session } = await run(engine)
  const after = treeOf(root)
  await session.undo()
  expect(treeOf(root)).toEqual(before)
  await session.redo()
  expect(treeOf(root)).toEqual(after)
})

test("keeps files that the user added to a moved directory, or to a directory that replaced a file", async () => {
  await using moved = await engineWith(["mv src lib"])
  const { session } = await run(moved)
  await writeFile(moved.project.path("lib/mine"), "mine")
  await session.undo()
  expect(await moved.project.read("lib/mine")).toBe("mine")
  expect(await readdir(moved.project.path("lib"))).toEqual(["mine"])
  expect(await moved.project.read("src/deep/y.ts")).toBe("Y")

  await using replaced = await engineWith(["rm a.txt; mkdir a.txt; echo 1 > a.txt/one"])
  const other = await run(replaced)
  await writeFile(replaced.project.path("a.txt/mine"), "mine")
  await expect(other.session.undo()).rejects.toThrow("it has been changed in the meantime")
  expect(await replaced.project.read("a.txt/one")).toBe("1\n")
})

test("names a file whose directory cannot be resolved as unreadable, and restores the others", async () => {
  await using engine = await engineWith(["echo 1 > src/x.ts; echo 1 > a.txt"])
  const { session } = await run(engine)
  await rm(engine.project.path("src"), { recursive: true })
  symlinkSync("src", engine.project.path("src"))
  await expect(session.undo()).rejects.toThrow(/src\/x\.ts: it cannot be read/)
  await session.undo({ others: true })
  expect(await engine.project.read("a.txt")).toBe("A")
})

test.skipIf(process.getuid?.() === 0)(
  "names a file in an unreadable directory, and restores the others",
  async () => {
    await using engine = await engineWith(["echo 1 > src/x.ts; echo 1 > a.txt"])
    const { session } = await run(engine)
    await chmod(engine.project.path("src"), 0)
    await expect(session.undo()).rejects.toThrow(/src\/x\.ts: it cannot be read/)
    await session.undo({ others: true })
    await chmod(engine.project.path("src"), 0o755)
    expect(await engine.project.read("a.txt")).toBe("A")
  },
)

test("changes nothing if an undo fails in the middle, and says why", async () => {
  await using engine = await engineWith(["mv src lib; rm a.txt; mkdir a.txt; echo 1 > a.txt/one"])
  const { session } = await run(engine)
  const after = treeOf(engine.project.directory)
  // The directory of the restored file cannot be created.
  await writeFile(engine.project.path("src"), "in the way")
  await expect(session.undo()).rejects.toThrow(/src\/.*: it has been changed in the meantime/)
  await rm(engine.project.path("src"))
  expect(treeOf(engine.project.directory)).toEqual(after)
  await mkdir(engine.project.path("src"))
  await session.undo()
  expect(await engine.project.read("a.txt")).toBe("A")
})
