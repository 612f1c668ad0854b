import { expect, test } from "vitest"
import * as z from "zod"
import { mustWait } from "../../src/call/schedule.ts"
import { define } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"

const plan = (access: "read" | "write" | "execute" | "meta", path?: string, serial = false) =>
  path === undefined ? { access, serial } : { access, serial, path }

test.each([
  ["two reads of one file", plan("read", "/a"), plan("read", "/a"), false],
  ["a write after a read of the file", plan("write", "/a"), plan("read", "/a"), true],
  ["a read after a write of the file", plan("read", "/a"), plan("write", "/a"), true],
  ["a read of another file", plan("read", "/b"), plan("write", "/a"), false],
  ["a listing of the directory that is written to", plan("read", "/d"), plan("write", "/d/a"), true],
  ["a program after a write", plan("execute"), plan("write", "/a"), true],
  ["a write after a program", plan("write", "/a"), plan("execute"), true],
  ["two programs", plan("execute"), plan("execute"), false],
  ["anything beside a serial tool", plan("read", "/b"), plan("meta", undefined, true), true],
])("%s", (_, later, earlier, waits) => {
  expect(mustWait(later, earlier)).toBe(waits)
})

test("runs a serial tool alone, others in parallel, and keeps the order of results", async () => {
  const log: string[] = []
  const tool = (id: string, serial: boolean) =>
    define(id, {
      description: id,
      parameters: z.object({ ms: z.number() }),
      serial,
      async execute({ ms }) {
        log.push(`${id}+`)
        await new Promise((resolve) => setTimeout(resolve, ms))
        log.push(`${id}-`)
        return { title: id, output: id }
      },
    })
  await using engine = await startEngine(
    [
      {
        calls: [
          { name: "a", arguments: { ms: 40 } },
          { name: "b", arguments: { ms: 10 } },
          { name: "alone", arguments: { ms: 5 } },
        ],
      },
      { text: "Done." },
    ],
    { tools: [tool("a", false), tool("b", false), tool("alone", true)], permission: { "*": "allow" } },
  )
  const session = await engine.tackle.sessions.create()
  await session.prompt("go").completed
  expect(log).toEqual(["a+", "b+", "b-", "a-", "alone+", "alone-"])
  const messages = engine.server.requests[1]?.body.messages as { role: string; content: string }[]
  expect(messages.filter(({ role }) => role === "tool").map(({ content }) => content)).toEqual([
    "a",
    "b",
    "alone",
  ])
})

test("applies all edits of one file in one answer", async () => {
  const edits = ["one", "two", "three"].map((word) => ({
    name: "edit",
    arguments: { filePath: "a.txt", oldString: word, newString: word.toUpperCase() },
  }))
  await using engine = await startEngine(
    [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }, ...edits] }, { text: "Done." }],
    { files: { "a.txt": "one\ntwo\nthree\n" }, permission: { edit: "allow" } },
  )
  const session = await engine.tackle.sessions.create()
  await session.prompt("go").completed
  expect(await engine.project.read("a.txt")).toBe("ONE\nTWO\nTHREE\n")
})

test("asks once before a third-party tool runs, and applies a deny", async () => {
  let runs = 0
  const tool = define("mine", {
    description: "Mine.",
    access: "read",
    parameters: z.object({ word: z.string() }),
    async execute({ word }, ctx) {
      runs += 1
      await ctx.ask({ permission: "mine", patterns: [word] })
      return { title: "mine", output: word }
    },
  })
  const script = [{ calls: [{ name: "mine", arguments: { word: "x" } }] }, { text: "Done." }]
  await using engine = await startEngine(script, { tools: [tool] })
  const asked: string[][] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.patterns)
    void request.reply("once")
  })
  const session = await engine.tackle.sessions.create()
  expect((await session.prompt("go").completed).exitCode).toBe(0)
  expect(asked).toEqual([['{"word":"x"}']])
  expect(runs).toBe(1)

  await using refusing = await startEngine(script, {
    tools: [tool],
    permission: { mine: { "*": "ask", "*x*": "deny" } },
  })
  const refused = await refusing.tackle.sessions.create()
  expect((await refused.prompt("go").completed).exitCode).toBe(3)
  expect(runs).toBe(1)
})

test('skips only the next question after an "always" for session or project', async () => {
  const script = (_: unknown, index: number) =>
    index % 2 === 0
      ? { calls: [{ name: "bash", arguments: { command: `factor ${index}` } }] }
      : { text: "Done." }
  await using engine = await startEngine(script)
  let asked = 0
  engine.tackle.on("permission.asked", (request) => {
    asked += 1
    void request.reply({ reply: "always", scope: "session" })
  })
  const one = await engine.tackle.sessions.create()
  await one.prompt("go").completed
  await one.prompt("again").completed
  expect(asked).toBe(1)
  const other = await engine.tackle.sessions.create()
  await other.prompt("go").completed
  expect(asked).toBe(2)
})
