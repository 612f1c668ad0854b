import { expect, test } from "vitest"
import { callsOf, createMachine, endOf, eventsOf, only } from "./run-tackle.ts"

const readCall = { id: "call_read", name: "read", arguments: { filePath: "notes.txt" } }

test("prints one event per line, from the session to its end", async () => {
  const machine = await createMachine({
    files: { "notes.txt": "seven\n" },
    script: [
      {
        text: "Looking.",
        calls: [readCall, { id: "call_bad", name: "read", arguments: { filePath: "none.txt" } }],
        pieceSize: 8,
        usage: { input: 100, output: 20 },
      },
      {
        calls: [
          {
            name: "todowrite",
            arguments: { todos: [{ content: "One", status: "pending", priority: "low" }] },
          },
        ],
      },
      { text: "It says seven.", usage: { input: 150, output: 10 } },
    ],
  })
  const run = await machine.run(["run", "--auto", "--format", "json", "what do the notes say?"])
  const events = eventsOf(run)
  const end = endOf(run)

  expect(events.map(({ time }) => time)).toEqual(events.map(({ time }) => time).sort((a, b) => a - b))
  expect(events[0]).toMatchObject({
    type: "session.created",
    session: { directory: machine.project.directory },
  })
  expect(new Set(events.map(({ sessionID }) => sessionID)).size).toBe(1)
  expect(only(events, "message.created").map(({ message }) => message.role)).toEqual([
    "user",
    "assistant",
    "assistant",
    "assistant",
  ])

  const statesOf = (callID: string) =>
    only(events, "part.updated").flatMap(({ part }) =>
      part.type === "tool" && part.callID === callID ? [part.state.status] : [],
    )
  expect(statesOf("call_read")).toEqual(["pending", "running", "completed"])
  expect(statesOf("call_bad")).toEqual(["pending", "running", "error"])
  const raw = only(events, "part.delta").filter(({ field }) => field === "raw")
  expect(raw.map(({ delta }) => delta).join("")).toContain('{"filePath":"notes.txt"}')

  expect(only(events, "todo.updated")).toMatchObject([{ todos: [{ content: "One" }] }])
  expect(end).toMatchObject({
    status: "completed",
    exitCode: 0,
    text: "It says seven.",
    refused: [],
    durationMs: expect.any(Number),
  })
  expect(end.usage.input).toBeGreaterThanOrEqual(250)
  expect(end.usage.output).toBeGreaterThanOrEqual(30)
  expect(run.stderr).toBe("")
})

test("announces only a new session; --session and --continue resume an existing one", async () => {
  const machine = await createMachine({ script: [{ text: "One." }, { text: "Two." }, { text: "Three." }] })
  const first = eventsOf(await machine.run(["run", "--format", "json", "first"]))
  const [created] = only(first, "session.created")
  const id = created?.sessionID ?? ""
  const second = eventsOf(await machine.run(["run", "--format", "json", "-s", id, "second"]))
  const third = eventsOf(await machine.run(["run", "--format", "json", "-c", "third"]))

  for (const events of [second, third]) {
    expect(only(events, "session.created")).toEqual([])
    expect(events.at(-1)?.sessionID).toBe(id)
  }
  const said = machine.server.requests.at(-1)?.body.messages.filter(({ role }) => role !== "system")
  expect(said).toMatchObject([
    { role: "user", content: "first" },
    { role: "assistant", content: "One." },
    { role: "user", content: "second" },
    { role: "assistant", content: "Two." },
    { role: "user", content: "third" },
  ])
})

test("keeps the output of a custom tool out of the events", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/loud.ts": `
        import { Tool } from "tackle/tool"
        import { z } from "zod"
        export default Tool.define("loud", {
          description: "Prints, and leaves a timer behind.",
          parameters: z.object({}),
          async execute() {
            console.log("NOISE")
            process.stdout.write("MORE NOISE\\n")
            setInterval(() => {}, 60_000)
            return { title: "loud", output: "done", metadata: {} }
          },
        })`,
    },
    script: [{ calls: [{ name: "loud", arguments: {} }] }, { text: "Quiet." }],
  })
  const run = await machine.run(["run", "--trust", "--auto", "--format", "json", "go"])
  expect(callsOf(run)).toEqual([["loud", "completed", "done"]])
  expect(run.stderr).toContain("NOISE")
  expect(run.signal).toBeNull()
})
