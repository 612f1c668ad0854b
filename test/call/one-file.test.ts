import { expect, test } from "vitest"
import { type Engine, startEngine } from "../session/engine.ts"
import { resultsOf, run, toolParts } from "../session/run.ts"

type Wanted = { name: string; arguments: Record<string, unknown> }

const text = "one\ntwo\nthree\n"
const read: Wanted = { name: "read", arguments: { filePath: "a.txt" } }
const edit = (oldString: string, newString: string): Wanted => ({
  name: "edit",
  arguments: { filePath: "./a.txt", oldString, newString },
})
const write = (content: string): Wanted => ({ name: "write", arguments: { filePath: "a.txt", content } })
const patch = (from: string, to: string): Wanted => ({
  name: "apply_patch",
  arguments: {
    patchText: `*** Begin Patch\n*** Update File: a.txt\n@@\n-${from}\n+${to}\n*** End Patch`,
  },
})
const bash = (command: string): Wanted => ({ name: "bash", arguments: { command, description: "x" } })

/** A session reads the file, then makes all calls in one answer. */
async function together(calls: Wanted[]) {
  await using engine = await startEngine([{ calls: [read] }, { calls }, { text: "Done." }], {
    files: { "a.txt": text },
    permission: { "*": "allow" },
    sandbox: "off",
  })
  const model = calls.some(({ name }) => name === "apply_patch") ? { model: "test/gpt-5" } : {}
  const session = await engine.tackle.sessions.create(model)
  await run(engine, { session })
  const [, ...parts] = await toolParts(session)
  const [, ...results] = await resultsOf(session)
  return { results, tools: parts.map(({ tool }) => tool), text: await engine.project.read("a.txt") }
}

const ok = /^(?!Error: )/

test.each<[string, Wanted[], string, RegExp[]]>([
  ["two edits", [edit("one", "1"), edit("three", "3")], "1\ntwo\n3\n", [ok, ok]],
  ["two edits of one place", [edit("one", "1"), edit("1", "first")], "first\ntwo\nthree\n", [ok, ok]],
  [
    "an edit that the first made void",
    [edit("one", "1"), edit("one", "I")],
    "1\ntwo\nthree\n",
    [ok, /^Error: /],
  ],
  ["edit, then write", [edit("one", "1"), write("new\n")], "new\n", [ok, ok]],
  ["write, then edit", [write("new\n"), edit("new", "newer")], "newer\n", [ok, ok]],
  ["two writes", [write("x\n"), write("y\n")], "y\n", [ok, ok]],
  ["read, then write", [read, write("new\n")], "new\n", [/two/, ok]],
  ["write, then read", [write("new\n"), read], "new\n", [ok, /new/]],
  ["two patches", [patch("one", "1"), patch("three", "3")], "1\ntwo\n3\n", [ok, ok]],
  ["read, patch, read", [read, patch("one", "1"), read], "1\ntwo\nthree\n", [/one/, ok, /1\n/]],
  [
    "a program between edits",
    [edit("one", "1"), bash("cat a.txt"), edit("1", "I")],
    "I\ntwo\nthree\n",
    [ok, /^1\n/, ok],
  ],
])("%s in one answer: in order, and nothing is lost", async (_, calls, after, expected) => {
  const done = await together(calls)
  expect(done.tools).toEqual(calls.map(({ name }) => name))
  expect(done.results.map((result, index) => expected[index]?.test(result) || result)).toEqual(
    calls.map(() => true),
  )
  expect(done.text).toBe(after)
})

/** Sessions of one engine that have read the file and then change it at the same time. */
async function sessions(engine: Engine, changes: Wanted[]) {
  const opened = await Promise.all(
    changes.map(({ name }) =>
      engine.tackle.sessions.create(name === "apply_patch" ? { model: "test/gpt-5" } : {}),
    ),
  )
  for (const session of opened) await run(engine, { session, text: "read" })
  await Promise.all(opened.map((session, index) => run(engine, { session, text: `change ${index}` })))
  return Promise.all(opened.map(async (session) => (await resultsOf(session)).at(-1) ?? ""))
}

test("applies parallel changes of several sessions completely or refuses them", async () => {
  for (let round = 0; round < 20; round += 1) {
    const changes = [edit("one", "1"), patch("two", "2"), edit("three", "3"), patch("one", "first")]
    await using engine = await startEngine(
      ({ body }) => {
        const last = body.messages.at(-1)
        if (last?.role === "tool") return { text: "Done." }
        const index = /change (\d)/.exec(JSON.stringify(last))?.[1]
        return { calls: [(index === undefined ? undefined : changes[Number(index)]) ?? read] }
      },
      { files: { "a.txt": text }, permission: { "*": "allow" } },
    )
    const results = await sessions(engine, changes)
    const after = await engine.project.read("a.txt")
    const made = (index: number) => ok.test(results[index] ?? "Error: ")
    expect(results.filter((result) => ok.test(result)).length).toBeGreaterThan(0)
    expect([made(0), made(3)]).not.toEqual([true, true])
    const lines = [made(0) ? "1" : made(3) ? "first" : "one", made(1) ? "2" : "two", made(2) ? "3" : "three"]
    expect(after).toBe(`${lines.join("\n")}\n`)
  }
})
