import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { UndoRefusedError } from "../../src/files/put-back.ts"
import { SessionBusyError, type SessionHandle } from "../../src/session/handle.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import { type Engine, startEngine } from "./engine.ts"
import { run } from "./run.ts"

type Call = [name: string, args: Record<string, unknown>]

/** Each turn is a list of calls, followed by text. */
function turns(...given: Call[][]): Script {
  return given.flatMap((calls) => [
    ...calls.map(([name, args]) => ({ calls: [{ name, arguments: args }] })),
    { text: "done" },
  ])
}

const write = (filePath: string, content: string): Call => ["write", { filePath, content }]
const read = (filePath: string): Call => ["read", { filePath }]
const bash = (command: string): Call => ["bash", { command }]
const allowed = { permission: { "*": "allow" }, sandbox: "off" } as const

async function refusedOf(undone: Promise<unknown>): Promise<Record<string, string>> {
  const error = await undone.catch((thrown: unknown) => thrown)
  if (!(error instanceof UndoRefusedError)) return expect.fail(`not refused: ${String(error)}`)
  return Object.fromEntries(error.refused.map(({ path, why }) => [path, why]))
}

interface Place {
  engine: Engine
  /** Undefined before the first run. */
  session: SessionHandle
  at: Engine["project"]["path"]
  read: Engine["project"]["read"]
}

/** Runs `prepare`, then one turn per list of calls. */
async function afterTurns(
  given: Call[][],
  files: Record<string, string> = {},
  prepare: (at: Place["at"]) => Promise<unknown> = async () => {},
): Promise<Place> {
  const engine = await startEngine(turns(...given), { ...allowed, files })
  onTestFinished(() => engine[Symbol.asyncDispose]())
  const { path: at, read } = engine.project
  await prepare(at)
  // File times are too coarse for the first scan to see changes within one tick.
  await sleep(50)
  const session = await engine.tackle.sessions.create()
  for (const _ of given) await run(engine, { session })
  return { engine, session, at, read }
}

const oneTurn = (
  calls: Call[],
  files?: Record<string, string>,
  prepare?: (at: Place["at"]) => Promise<unknown>,
) => afterTurns([calls], files, prepare)

test.each([
  ["renamed", (at: Engine["project"]["path"]) => rename(at("a.txt"), at("other.txt"))],
  ["removed", (at: Engine["project"]["path"]) => rm(at("a.txt"))],
  [
    "made a directory of",
    async (at: Engine["project"]["path"]) => {
      await rm(at("a.txt"))
      await mkdir(at("a.txt"))
    },
  ],
  [
    "made a link of",
    async (at: Engine["project"]["path"]) => {
      await rename(at("a.txt"), at("other.txt"))
      await symlink("other.txt", at("a.txt"))
    },
  ],
])("refuses a file that the user %s, and changes nothing of the turn", async (_, act) => {
  const { engine, session, at } = await oneTurn([bash("printf B > a.txt; printf B > b.txt")], {
    "a.txt": "A",
    "b.txt": "A",
  })
  await act(at)
  const before = (await readdir(at())).sort()
  expect(await refusedOf(session.undo())).toEqual({ [at("a.txt")]: "changed" })
  expect((await readdir(at())).sort()).toEqual(before)
  expect(await engine.project.read("b.txt")).toBe("B")
  expect((await session.undo({ others: true })).files).toEqual([{ path: at("b.txt"), kind: "restored" }])
  expect(existsSync(at("other.txt")) ? readFileSync(at("other.txt"), "utf8") : "B").toBe("B")
})

test("keeps what the user created where the turn removed something", async () => {
  const { session, at, read } = await oneTurn([bash("rm -r d; rm a.txt")], {
    "d/x": "X",
    "d/e/y": "Y",
    "a.txt": "A",
  })
  await writeFile(at("d"), "now a file")
  expect(await refusedOf(session.undo())).toEqual({ [at("d/x")]: "changed", [at("d/e/y")]: "changed" })
  expect(await read("d")).toBe("now a file")
  await rm(at("d"))
  await session.undo()
  expect([await read("d/x"), await read("d/e/y"), await read("a.txt")]).toEqual(["X", "Y", "A"])
})

test("skips created files and refuses changed ones in a directory that the user removed", async () => {
  const { session, at } = await oneTurn([bash("printf N > d/new; printf B > e/old")], {
    "d/keep": "",
    "e/old": "A",
  })
  await rm(at("d"), { recursive: true })
  await rm(at("e"), { recursive: true })
  expect(await refusedOf(session.undo())).toEqual({ [at("e/old")]: "changed" })
  expect((await session.undo({ others: true })).files).toEqual([])
})

test("restores binary content", async () => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 31 + (index >> 8)) & 0xff))
  const { session, at } = await oneTurn([bash("printf '\\000\\377' > image.bin")], {}, (at) =>
    writeFile(at("image.bin"), bytes),
  )
  expect([...(await readFile(at("image.bin")))]).toEqual([0, 255])
  await session.undo()
  expect(bytes.equals(await readFile(at("image.bin")))).toBe(true)
  await session.redo()
  expect([...(await readFile(at("image.bin")))]).toEqual([0, 255])
})

test("refuses files of 100 MB as too large and keeps their content", async () => {
  const size = 100 * 1024 * 1024
  const commands = [
    bash(`printf B | dd of=old.bin conv=notrunc 2>/dev/null; truncate -s ${size} new.bin; printf B > a.txt`),
  ]
  const { session, at, read } = await oneTurn(commands, { "a.txt": "A" }, async (at) => {
    await writeFile(at("old.bin"), "A")
    await truncate(at("old.bin"), size)
  })
  expect(await refusedOf(session.undo())).toEqual({
    [at("old.bin")]: "too-large",
    [at("new.bin")]: "too-large",
  })
  expect(await read("a.txt")).toBe("B")
  await session.undo({ others: true })
  expect(await read("a.txt")).toBe("A")
  expect([(await stat(at("old.bin"))).size, (await stat(at("new.bin"))).size]).toEqual([size, size])
})

test("reverts permission bits of the turn, but not the user's", async () => {
  const mode = async (path: string) => (await stat(path)).mode & 0o7777
  const commands = [
    bash("chmod 755 made-runnable; printf B > private; printf B > later; printf N > new; chmod 700 new"),
    read("tool"),
    write("tool", "B"),
  ]
  const files = { "made-runnable": "A", private: "A", later: "A", tool: "A" }
  const { session, at } = await oneTurn(commands, files, async (at) => {
    for (const name of ["made-runnable", "later"]) await chmod(at(name), 0o644)
    await chmod(at("private"), 0o600)
    await chmod(at("tool"), 0o750)
  })
  await chmod(at("later"), 0o640)
  await session.undo()
  expect(await mode(at("made-runnable"))).toBe(0o644)
  expect(await mode(at("private"))).toBe(0o600)
  expect(await mode(at("later"))).toBe(0o640)
  expect(await mode(at("tool"))).toBe(0o750)
  await session.redo()
  expect(await mode(at("made-runnable"))).toBe(0o755)
  expect(await mode(at("new"))).toBe(0o700)
  expect(await mode(at("later"))).toBe(0o640)
})

test("restores a file behind a link, and does not follow a link that changed", async () => {
  const {
    session,
    at,
    read: contentOf,
  } = await oneTurn(
    [read("link.txt"), write("link.txt", "B"), read("d/x"), write("d/x", "B")],
    { "real.txt": "A", "dir/x": "A", "mine/x": "B" },
    async (at) => {
      await symlink("real.txt", at("link.txt"))
      await symlink("dir", at("d"))
    },
  )
  await session.undo()
  expect(await readlink(at("link.txt"))).toBe("real.txt")
  expect([await contentOf("real.txt"), await contentOf("dir/x")]).toEqual(["A", "A"])
  await session.redo()
  // The same content, but not the file that the turn changed.
  await rename(at("dir"), at("dir.old"))
  await symlink("mine", at("dir"))
  expect(await refusedOf(session.undo())).toEqual({ [at("dir/x")]: "changed" })
  expect([await contentOf("mine/x"), await contentOf("dir.old/x")]).toEqual(["B", "B"])
})

test("restores a file that a command replaced by a link, and leaves the target alone", async () => {
  const {
    session,
    at,
    read: contentOf,
  } = await oneTurn([bash("rm a.txt; ln -s b.txt a.txt")], { "a.txt": "A", "b.txt": "B" })
  await session.undo()
  expect((await lstat(at("a.txt"))).isSymbolicLink()).toBe(false)
  expect([await contentOf("a.txt"), await contentOf("b.txt")]).toEqual(["A", "B"])
})

test("restores an ignored file that a tool wrote, and leaves git's own files alone", async () => {
  const {
    session,
    at,
    read: contentOf,
  } = await oneTurn(
    [
      read("local.conf"),
      write("local.conf", "B"),
      bash("git add tracked.txt; printf B > tracked.txt; printf B > ignored.log"),
    ],
    { ".gitignore": "*.conf\n*.log\n", "local.conf": "A", "tracked.txt": "A", "ignored.log": "A" },
    async (at) => {
      const git = spawn("git", ["init", "-q"], { cwd: at(), stdio: "ignore" })
      await once(git, "exit")
    },
  )
  const index = await readFile(at(".git/index"))
  await session.undo()
  expect([await contentOf("local.conf"), await contentOf("tracked.txt")]).toEqual(["A", "A"])
  // Changes of ignored files by a command are not recorded.
  expect(await contentOf("ignored.log")).toBe("B")
  expect(index.equals(await readFile(at(".git/index")))).toBe(true)
})

test("restores a file outside the project that a tool wrote", async () => {
  const outside = await realpath(await mkdtemp(join(tmpdir(), "tackle-outside-")))
  onTestFinished(() => rm(outside, { recursive: true, force: true }))
  const path = join(outside, "deep/er/notes.txt")
  const { session } = await oneTurn([write(path, "N")])
  expect(await readFile(path, "utf8")).toBe("N")
  expect((await session.undo()).files).toEqual([{ path, kind: "removed" }])
  expect(existsSync(path)).toBe(false)
  expect(existsSync(join(outside, "deep"))).toBe(false)
  await session.redo()
  expect(await readFile(path, "utf8")).toBe("N")
})

test("refuses to undo a turn whose file the user changed between two turns", async () => {
  const {
    engine,
    session,
    at,
    read: contentOf,
  } = await afterTurns([[read("a.txt"), write("a.txt", "1")], [bash("printf 2 > a.txt")]], { "a.txt": "0" })
  await session.undo()
  expect(await contentOf("a.txt")).toBe("1")
  await engine.project.write("a.txt", "mine")
  expect(await refusedOf(session.undo())).toEqual({ [at("a.txt")]: "changed" })
  expect(await refusedOf(session.redo())).toEqual({ [at("a.txt")]: "changed" })
  await engine.project.write("a.txt", "1")
  await session.undo()
  expect(await contentOf("a.txt")).toBe("0")
})

test("refuses to redo over later changes, and after a new turn", async () => {
  const {
    engine,
    session,
    at,
    read: contentOf,
  } = await afterTurns([[bash("printf B > a.txt")], [write("b.txt", "B")]], { "a.txt": "A" })
  await session.undo()
  await session.undo()
  await engine.project.write("a.txt", "mine")
  expect(await refusedOf(session.redo())).toEqual({ [at("a.txt")]: "changed" })
  expect(await contentOf("a.txt")).toBe("mine")
  await engine.project.write("a.txt", "A")
  await session.redo()
  expect(await contentOf("a.txt")).toBe("B")
  // The script has ended: the turn fails, but it is a turn.
  await run(engine, { session })
  await expect(session.redo()).rejects.toThrow("Nothing to redo")
  expect(existsSync(at("b.txt"))).toBe(false)
  await session.undo()
  expect(await contentOf("a.txt")).toBe("A")
})

test("refuses to undo during a prompt, and undoes during a job except for the job's later changes", async () => {
  const job = bash(
    "printf B > b.txt; (while [ ! -e go ]; do sleep 0.05; done; printf late > a.txt; printf late > b.txt; touch done; sleep 60) > /dev/null 2>&1 &",
  )
  const { engine, session, at, read: contentOf } = await afterTurns([[job]], { "a.txt": "A", "b.txt": "A" })
  await session.undo()
  expect([await contentOf("a.txt"), await contentOf("b.txt")]).toEqual(["A", "A"])
  await session.redo()
  await engine.project.write("go", "")
  await expect.poll(() => existsSync(at("done")), { timeout: 20_000 }).toBe(true)
  expect(await refusedOf(session.undo())).toEqual({ [at("b.txt")]: "changed" })
  expect([await contentOf("a.txt"), await contentOf("b.txt")]).toEqual(["late", "late"])

  const busy = await startEngine([{ text: "slow", pieceSize: 1, pieceDelayMs: 60_000 }], allowed)
  onTestFinished(() => busy[Symbol.asyncDispose]())
  const other = await busy.tackle.sessions.create()
  const stop = new AbortController()
  const { completed } = other.prompt("go", { signal: stop.signal })
  await expect(other.undo()).rejects.toBeInstanceOf(SessionBusyError)
  stop.abort()
  await completed
})

test("undoes a turn whose process was killed", async () => {
  const project = await temporaryProject({ "a.txt": "A" })
  onTestFinished(() => project.remove())
  const server = await startModelServer({
    script: turns([read("a.txt"), write("a.txt", "B"), write("new.txt", "N"), bash("sleep 300")]),
  })
  onTestFinished(() => server.close())
  const child = spawn(
    process.execPath,
    [processScript("test/session/prompt-process"), project.directory, server.url],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  let started = 0
  for await (const piece of child.stdout) {
    started += String(piece).split("running").length - 1
    if (existsSync(project.path("new.txt")) && started >= 4) break
  }
  child.kill("SIGKILL")
  await once(child, "exit")
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
  })
  onTestFinished(() => tackle.close())
  const session = (await tackle.sessions.latest()) ?? expect.fail()
  expect((await session.undo()).files).toHaveLength(2)
  expect(await project.read("a.txt")).toBe("A")
  expect(existsSync(project.path("new.txt"))).toBe(false)
  await session.redo()
  expect([await project.read("a.txt"), await project.read("new.txt")]).toEqual(["B", "N"])
})
