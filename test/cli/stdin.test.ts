import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("reads the message from stdin for - and without a message, and otherwise leaves stdin alone", async () => {
  const machine = await createMachine({
    script: ({ body }) => ({ text: `You said ${JSON.stringify(body.messages.at(-1)?.content)}.` }),
  })
  const dash = await machine.run(["run", "-"], { stdin: "from\nthe pipe\n" })
  expect(dash).toMatchObject({ code: 0, stdout: 'You said "from\\nthe pipe".\n' })
  const none = await machine.run(["run"], { stdin: "piped" })
  expect(none).toMatchObject({ code: 0, stdout: 'You said "piped".\n' })
  // The pipe is never closed, so reading it would hang.
  const given = await machine.run(["run", "two", "words"], { stdin: { open: true } })
  expect(given).toMatchObject({ code: 0, stdout: 'You said "two words".\n' })
  const blank = await machine.run(["run", "-"], { stdin: " \n" })
  expect(blank).toMatchObject({
    code: 2,
    stderr: "tackle: The prompt is empty, because stdin contained no text.\n",
  })
  const input = await machine.run(["tool", "call", "glob", "-"], { stdin: '{"pattern":"*.none"}' })
  expect(input.code).toBe(0)
})

test("runs the prompt on stdin or in the arguments if no command is given and no user can type", async () => {
  const machine = await createMachine({
    script: ({ body }) => ({ text: `You said ${JSON.stringify(body.messages.at(-1)?.content)}.` }),
  })
  const piped = await machine.run([], { stdin: "from the pipe\n" })
  expect(piped).toMatchObject({ code: 0, stdout: 'You said "from the pipe".\n' })
  // The pipe is never closed, so reading it would hang.
  const given = await machine.run(["two words"], { stdin: { open: true } })
  expect(given).toMatchObject({ code: 0, stdout: 'You said "two words".\n' })
  const continued = await machine.run(["-c"], { stdin: "more" })
  expect(continued).toMatchObject({ code: 0, stdout: 'You said "more".\n' })
  const nothing = await machine.run([])
  expect(nothing.stdout).toContain("Usage: tackle")
  const word = await machine.run(["sesion"], { stdin: "text" })
  expect(word).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown command") })
  expect(machine.server.requests).toHaveLength(3)
})

test("stops the command when the reader closes its output", async () => {
  const machine = await createMachine({
    script: [{ text: "word ".repeat(9_000), pieceSize: 5, pieceDelayMs: 5 }],
  })
  const run = machine.start(["run", "--format", "json", "talk"])
  run.child.stdout?.once("data", () => run.child.stdout?.destroy())
  const { code } = await run.ended
  expect(code).toBe(130)
  expect(run.stderr).toBe("")
})

test("stops a command without an engine when the reader closes its output", async () => {
  const cases = Array.from({ length: 400 }, () => ({
    ...{ rules: {}, permission: "bash", pattern: `rm ${"x".repeat(2_000)}`, expect: "allow" },
  }))
  const machine = await createMachine({
    files: { "cases.jsonl": cases.map((each) => JSON.stringify(each)).join("\n") },
  })
  const run = machine.start(["permission", "test", "cases.jsonl"])
  run.child.stdout?.once("data", () => run.child.stdout?.destroy())
  await run.ended
  expect(run.stderr).toBe("")
})
