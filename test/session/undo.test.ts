import { globSync, readFileSync, writeFileSync } from "node:fs"
import { chmod, readdir, rm, stat } from "node:fs/promises"
import { join, relative } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, test } from "vitest"
import { UndoRefusedError } from "../../src/files/put-back.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { startEngine } from "./engine.ts"
import { scriptFor, task } from "./family.ts"
import { run } from "./run.ts"

/** Each turn is one call, followed by text. */
function turns(...calls: [string, Record<string, unknown>][]): Script {
  return calls.flatMap(([name, args]) => [{ calls: [{ name, arguments: args }] }, { text: "done" }]) as Script
}

const allowed = { permission: { "*": "allow" } } as const
const write = (filePath: string, content: string): [string, Record<string, unknown>] => [
  "write",
  { filePath, content },
]
const bash = (command: string): [string, Record<string, unknown>] => ["bash", { command }]

test("undoes and redoes a turn, and names the files in the next prompt", async () => {
  await using engine = await startEngine(
    turns(write("new.txt", "new\n"), write("next.txt", "next\n")),
    allowed,
  )
  const { session } = await run(engine)
  const path = engine.project.path("new.txt")
  expect(await session.undo()).toMatchObject({ prompt: "go", files: [{ path, kind: "removed" }] })
  await expect(stat(path)).rejects.toThrow("ENOENT")
  expect(await session.redo()).toMatchObject({ files: [{ path, kind: "restored" }] })
  expect(await engine.project.read("new.txt")).toBe("new\n")
  await session.undo()
  await run(engine, { session, text: "continue" })
  const told = JSON.stringify(engine.server.requests.at(-1)?.body)
  expect(told).toContain("The user undid your changes")
  expect(told).toContain(path)
  await expect(session.redo()).rejects.toThrow("Nothing to redo")
})

test("undoes and redoes a patch that adds, changes and moves files", async () => {
  const patchText = `*** Begin Patch
*** Add File: added/n.txt
+N
*** Update File: a.txt
-A
+B
*** Update File: old.txt
*** Move to: moved/deep/new.txt
-O
+P
*** Update File: same.txt
*** Move to: moved/same.txt
*** End Patch`
  const before = { "a.txt": "A\n", "old.txt": "O\n", "same.txt": "S\n" }
  const after = {
    "a.txt": "B\n",
    "added/n.txt": "N\n",
    "moved/deep/new.txt": "P\n",
    "moved/same.txt": "S\n",
  }
  await using engine = await startEngine(turns(["apply_patch", { patchText }]), {
    ...allowed,
    model: "test/gpt-5",
    files: before,
  })
  const { directory } = engine.project
  const files = () => {
    const names = globSync("**/*", { cwd: directory, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = names.map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    return Object.fromEntries(paths.map((path) => [path, readFileSync(join(directory, path), "utf8")]))
  }
  const { session } = await run(engine)
  expect(files()).toEqual(after)
  await session.undo()
  expect(files()).toEqual(before)
  expect((await readdir(directory)).filter((name) => !name.startsWith("."))).toEqual(Object.keys(before))
  await session.redo()
  expect(files()).toEqual(after)
})

test("undoes a command's changes: content, creation, removal and mode", async () => {
  const command =
    "printf B > a.txt; printf N > made.txt; rm gone.txt; chmod 755 run.sh; cat a.txt > ignored.log"
  await using engine = await startEngine(turns(bash(command)), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A", "gone.txt": "G", "run.sh": "#!", ".gitignore": "*.log\n", "ignored.log": "mine" },
  })
  await chmod(engine.project.path("run.sh"), 0o644)
  const { session } = await run(engine)
  expect(await engine.project.read("a.txt")).toBe("B")
  await session.undo()
  expect(await engine.project.read("a.txt")).toBe("A")
  expect(await engine.project.read("gone.txt")).toBe("G")
  expect((await stat(engine.project.path("run.sh"))).mode & 0o777).toBe(0o644)
  await expect(stat(engine.project.path("made.txt"))).rejects.toThrow("ENOENT")
  await session.redo()
  expect(await engine.project.read("a.txt")).toBe("B")
  expect(await engine.project.read("made.txt")).toBe("N")
  expect((await stat(engine.project.path("run.sh"))).mode & 0o777).toBe(0o755)
  await expect(stat(engine.project.path("gone.txt"))).rejects.toThrow("ENOENT")
})

test("refuses files that the user changed, and can restore the others", async () => {
  await using engine = await startEngine(turns(bash("printf B > a.txt; printf B > b.txt")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A", "b.txt": "A" },
  })
  const { session } = await run(engine)
  await engine.project.write("a.txt", "mine")
  const refusal = await session.undo().catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(UndoRefusedError)
  expect((refusal as UndoRefusedError).refused).toEqual([
    { path: engine.project.path("a.txt"), why: "changed" },
  ])
  expect(await engine.project.read("b.txt")).toBe("B")
  const { refused } = await session.undo({ others: true })
  expect(refused).toHaveLength(1)
  expect(await engine.project.read("a.txt")).toBe("mine")
  expect(await engine.project.read("b.txt")).toBe("A")
})

test.each([
  { found: ["A", "B"], user: undefined, outcome: "finished", files: ["A", "A"] },
  { found: ["A", "A"], user: undefined, outcome: "finished", files: ["A", "A"] },
  { found: ["A", "B"], user: "mine", outcome: "reverted", files: ["B", "mine"] },
] as const)(
  "an undo whose process ended at $found is $outcome before the next prompt (user's change: $user)",
  async ({ found, user, outcome, files }) => {
    const store = createMemoryStore()
    const problems: string[] = []
    await using engine = await startEngine(turns(bash("printf B > a.txt; printf B > b.txt"), bash("true")), {
      ...allowed,
      store,
      sandbox: "off",
      files: { "a.txt": "A", "b.txt": "A" },
      onProblem: (message) => void problems.push(message),
    })
    const { session } = await run(engine)
    // An undo stores the contents that it replaces.
    await session.undo()
    await session.redo()
    const [id = ""] = (await session.messages()).map(({ message }) => message.id)
    const { time, ...rest } = session.info()
    const restoring = { direction: "undo" as const, messages: [id] }
    const changed = { ...rest, restoring, time: { ...time, updated: time.updated + 1 } }
    await store.commit([{ kind: "session", session: changed }])
    await engine.project.write("a.txt", found[0])
    await engine.project.write("b.txt", user ?? found[1])
    await run(engine, { session, text: "continue" })
    expect(problems).toEqual([`an interrupted undo was ${outcome}`])
    expect(await Promise.all(["a.txt", "b.txt"].map(engine.project.read))).toEqual(files)
    expect(session.info().restoring).toBeUndefined()
    const told = JSON.stringify(engine.server.requests.at(-1)?.body)
    expect(told.includes("The user undid your changes")).toBe(outcome === "finished")
  },
)

test("restores nothing if every file is refused", async () => {
  await using engine = await startEngine(turns(bash("printf B > a.txt")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A" },
  })
  const { session } = await run(engine)
  await engine.project.write("a.txt", "mine")
  await expect(session.undo({ others: true })).rejects.toThrow(UndoRefusedError)
  await engine.project.write("a.txt", "B")
  await session.undo()
  expect(await engine.project.read("a.txt")).toBe("A")
})

test("skips a turn that cannot be undone", async () => {
  await using engine = await startEngine(
    turns(write("a.txt", "A"), write("b.txt", "B"), write("c.txt", "C")),
    allowed,
  )
  const { session } = await run(engine)
  await run(engine, { session })
  const [a, b] = [engine.project.path("a.txt"), engine.project.path("b.txt")]
  await rm(b)
  await engine.project.write("b.txt/mine", "mine")
  await expect(session.undo({ others: true })).rejects.toThrow(
    "--skip keeps the turn as it is, and the next undo continues with the turn before it.",
  )
  expect(await session.undo({ skip: true })).toMatchObject({
    files: [],
    refused: [{ path: b, why: "skipped" }],
  })
  expect(await session.undo()).toMatchObject({ files: [{ path: a, kind: "removed" }], refused: [] })
  // Redo skips what was not undone, and it can be undone once that is possible.
  expect(await session.redo()).toMatchObject({ files: [{ path: a, kind: "restored" }] })
  expect(await session.redo()).toMatchObject({ files: [], refused: [] })
  await expect(session.undo()).rejects.toThrow(UndoRefusedError)
  await session.undo({ skip: true })
  await session.undo()
  expect(await engine.project.read("b.txt/mine")).toBe("mine")

  await run(engine, { session, text: "continue" })
  const [told = ""] = /The user undid[^"]*/.exec(JSON.stringify(engine.server.requests.at(-1)?.body)) ?? []
  expect(told).toContain(a)
  expect(told).not.toContain(b)
})

test("does not redo a file that its undo left alone", async () => {
  await using engine = await startEngine(turns(bash("printf B > a.txt; printf B > b.txt")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A", "b.txt": "A" },
  })
  const { session } = await run(engine)
  await engine.project.write("a.txt", "mine")
  await session.undo({ others: true })
  expect(await session.redo()).toMatchObject({ files: [{ path: engine.project.path("b.txt") }], refused: [] })
  expect(await engine.project.read("a.txt")).toBe("mine")
  // From here the turn is as if it had not been undone.
  await engine.project.write("a.txt", "B")
  await session.undo()
  expect([await engine.project.read("a.txt"), await engine.project.read("b.txt")]).toEqual(["A", "A"])
})

test("skips an undo that cannot be redone", async () => {
  await using engine = await startEngine(turns(write("a.txt", "A"), write("b.txt", "B")), allowed)
  const { session } = await run(engine)
  await run(engine, { session })
  await session.undo()
  await session.undo()
  await engine.project.write("a.txt", "mine")
  await expect(session.redo()).rejects.toThrow("the next redo continues with the turn after it")
  await session.redo({ skip: true })
  await session.redo()
  expect([await engine.project.read("a.txt"), await engine.project.read("b.txt")]).toEqual(["mine", "B"])
})

test("stores nothing for a turn without changes", async () => {
  await using engine = await startEngine(turns(bash("ls"), bash("true; exit 3")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A" },
  })
  const { session } = await run(engine)
  await run(engine, { session })
  const parts = (await session.messages()).flatMap((entry) => entry.parts)
  expect(parts.filter(({ type }) => type === "patch")).toEqual([])
  await expect(readdir(engine.project.path(".data/snapshot"))).rejects.toThrow("ENOENT")
  await expect(session.undo()).rejects.toThrow("Nothing to undo")
})

test("does not treat an ignored file that becomes visible as new", async () => {
  await using engine = await startEngine(turns(bash("rm .gitignore")), {
    ...allowed,
    sandbox: "off",
    files: { ".gitignore": "secret.txt\n", "secret.txt": "mine" },
  })
  // File times are too coarse to see changes within one tick.
  await sleep(50)
  const { session } = await run(engine)
  const { unseen } = await session.undo()
  expect(await engine.project.read("secret.txt")).toBe("mine")
  expect(await engine.project.read(".gitignore")).toBe("secret.txt\n")
  expect(unseen.join()).toContain("secret.txt")
})

test("refuses a file that someone else changed during the turn", async () => {
  const script = [
    { calls: [{ name: "write", arguments: { filePath: "a.txt", content: "1" } }] },
    { calls: [{ name: "bash", arguments: { command: "true" } }] },
    { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] },
    { calls: [{ name: "write", arguments: { filePath: "a.txt", content: "2" } }] },
    { text: "done" },
  ] as Script
  await using engine = await startEngine(script, { ...allowed, sandbox: "off" })
  const unsubscribe = engine.tackle.on("part.updated", ({ part }) => {
    if (part.type !== "tool" || part.tool !== "bash" || part.state.status !== "completed") return
    unsubscribe()
    writeFileSync(engine.project.path("a.txt"), "mine")
  })
  const { session } = await run(engine)
  expect(await engine.project.read("a.txt")).toBe("2")
  await expect(session.undo()).rejects.toThrow("during the turn")
  expect(await engine.project.read("a.txt")).toBe("2")
})

test("reports contents that are no longer kept, and changes nothing", async () => {
  await using engine = await startEngine(turns(bash("printf B > a.txt; printf C > c.txt")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "A" },
  })
  const { session } = await run(engine)
  await rm(engine.project.path(".data/snapshot"), { recursive: true })
  await expect(session.undo()).rejects.toThrow("no longer stored")
  expect(await engine.project.read("c.txt")).toBe("C")
})

test("undoes nothing in an imported session", async () => {
  await using engine = await startEngine(turns(write("new.txt", "new\n")), allowed)
  const { session } = await run(engine)
  const archive = await engine.tackle.sessions.export(session.id)
  const imported = await engine.tackle.sessions.import(archive, { copy: true })
  await expect(imported.undo()).rejects.toThrow("Nothing to undo")
  const fork = await engine.tackle.sessions.fork(session.id)
  expect((await fork?.undo())?.files).toHaveLength(1)
})

test("assigns a subagent's changes to the turn that started it", async () => {
  const script = scriptFor({
    go: [{ calls: [task("part")] }, { text: "done" }],
    part: [
      { calls: [{ name: "write", arguments: { filePath: "sub.txt", content: "S" } }] },
      { text: "done" },
    ],
  })
  await using engine = await startEngine(script, { ...allowed, sandbox: "off" })
  const { session } = await run(engine)
  expect(await engine.project.read("sub.txt")).toBe("S")
  expect(await session.undo()).toMatchObject({ prompt: "go", files: [{ kind: "removed" }] })
  await expect(stat(engine.project.path("sub.txt"))).rejects.toThrow("ENOENT")
})

test("undoes turns from the last to the first", async () => {
  await using engine = await startEngine(turns(bash("printf 1 > a.txt"), bash("printf 2 > a.txt")), {
    ...allowed,
    sandbox: "off",
    files: { "a.txt": "0" },
  })
  const { session } = await run(engine, { text: "one" })
  await run(engine, { session, text: "two" })
  expect((await session.undo()).prompt).toBe("two")
  expect((await session.undo()).prompt).toBe("one")
  expect(await engine.project.read("a.txt")).toBe("0")
  await session.redo()
  expect(await engine.project.read("a.txt")).toBe("1")
  await session.redo()
  expect(await engine.project.read("a.txt")).toBe("2")
})

test("undoes several turns as one operation, and redoes them one after another", async () => {
  await using engine = await startEngine(
    turns(
      bash("echo one > a.txt"),
      write("new/b.txt", "b\n"),
      bash("echo two > a.txt"),
      bash("rm new/b.txt"),
      write("c.txt", "c\n"),
    ),
    { ...allowed, files: { "a.txt": "zero\n" } },
  )
  const { session } = await run(engine, { text: "first" })
  for (const text of ["second", "third", "fourth", "fifth"]) await run(engine, { session, text })
  const { directory } = engine.project
  const files = () => {
    const names = globSync("**/*.txt", { cwd: directory }).sort()
    return names.map((name) => `${name}: ${readFileSync(join(directory, name), "utf8").trim()}`)
  }
  const asked = (await session.messages()).filter(({ message }) => message.role === "user")
  const [first, second] = asked.map(({ message }) => message.id)
  expect(files()).toEqual(["a.txt: two", "c.txt: c"])
  const result = await session.undo({ through: second })
  expect(files()).toEqual(["a.txt: one"])
  expect(result).toMatchObject({ messageID: second, prompt: "second" })
  expect(result.files.map(({ path, kind }) => `${kind} ${relative(directory, path)}`).sort()).toEqual([
    "removed c.txt",
    "restored a.txt",
  ])
  const redone: string[][] = []
  for (let turn = 0; turn < 4; turn += 1) {
    await session.redo()
    redone.push(files())
  }
  expect(redone).toEqual([
    ["a.txt: one", "new/b.txt: b"],
    ["a.txt: two", "new/b.txt: b"],
    ["a.txt: two"],
    ["a.txt: two", "c.txt: c"],
  ])
  await session.undo({ through: first })
  expect(files()).toEqual(["a.txt: zero"])
  await expect(session.undo({ through: first })).rejects.toThrow(
    `no turn from message ${first} on changed a file`,
  )
})

test("undoes none of several turns if one of their files has changed, also between the turns", async () => {
  await using engine = await startEngine(
    turns(bash("echo one > a.txt"), write("b.txt", "b\n"), bash("echo three >> a.txt")),
    { ...allowed, files: { "a.txt": "zero\n" } },
  )
  const { session } = await run(engine, { text: "first" })
  await run(engine, { session, text: "second" })
  writeFileSync(engine.project.path("a.txt"), "by the user\n")
  const asked = (await session.messages()).filter(({ message }) => message.role === "user")
  const through = asked[0]?.message.id
  const refusal = await session.undo({ through }).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(UndoRefusedError)
  // `others` and `skip` apply only to one turn.
  expect(String(refusal)).toMatch(/Cannot undo the 2 turns.*, or undo fewer turns\.$/s)
  expect(await engine.project.read("b.txt")).toBe("b\n")
  await run(engine, { session, text: "third" })
  await expect(session.undo({ through })).rejects.toThrow(UndoRefusedError)
  expect(await engine.project.read("a.txt")).toBe("by the user\nthree\n")
  expect(await engine.project.read("b.txt")).toBe("b\n")
  // Single turns can still be undone.
  await session.undo()
  expect(await engine.project.read("a.txt")).toBe("by the user\n")
  for (const choice of [{ others: true }, { skip: true }])
    await expect(session.undo({ through, ...choice })).rejects.toThrow("cannot be used")
  await expect(session.undo({ through: "msg_unknown" })).rejects.toThrow("not part of the session")
})
