import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { expect, test } from "vitest"
import { runProgram } from "../../src/external-tool/run.ts"
import { PermissionError } from "../../src/permission/errors.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { makeProgram, nodeProgram } from "./make-program.ts"

test("a program gets its call and gives its result, with a title, metadata and attachments", async () => {
  const program = nodeProgram(`read((line) => {
    write({ type: "metadata", id: line.id, title: "half way", metadata: { done: 1 } })
    console.error("working")
    write({ type: "result", id: line.id, title: "all", output: JSON.stringify(line), metadata: { n: 2 },
      attachments: [{ type: "file", mime: "text/plain", url: "data:text/plain,hi" }] })
  })`)
  await using ctx = fakeContext({ directory: program.host.directory })
  const result = await runProgram(program, { city: "Bergen" }, ctx)
  expect(result).toMatchObject({
    title: "all",
    metadata: { n: 2, stderr: "working" },
    attachments: [{ mime: "text/plain" }],
  })
  expect(JSON.parse(result.output)).toMatchObject({
    type: "call",
    arguments: { city: "Bergen" },
    context: { sessionID: "ses_test", callID: "call_test", directory: ctx.directory, agent: "build" },
  })
  expect(ctx.reported).toContainEqual({ title: "half way", metadata: { done: 1 } })
})

const asking = `read((line) => {
  if (line.type === "call") write({ type: "ask", id: line.id, ask: "a", permission: "edit", patterns: ["x.txt"], paths: ["x.txt"] })
  if (line.type === "reply" && line.allowed) write({ type: "result", id: line.id, output: "written" })
  if (line.type === "reply" && !line.allowed) write({ type: "error", id: line.id, message: "gave up" })
})`

test("an ask is put to the engine, and its answer comes back", async () => {
  const program = nodeProgram(asking)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).resolves.toMatchObject({ output: "written" })
  expect(ctx.asked).toEqual([{ permission: "edit", patterns: ["x.txt"], paths: ["x.txt"] }])
})

test("a call that gives up at a refusal fails with the refusal", async () => {
  const program = nodeProgram(asking)
  const refusal = new PermissionError({ kind: "denied", permission: "edit", patterns: ["x.txt"], by: "rule" })
  await using ctx = fakeContext({
    directory: program.host.directory,
    onAsk() {
      throw refusal
    },
  })
  await expect(runProgram(program, {}, ctx)).rejects.toBe(refusal)
})

test("an error line is what the model reads", async () => {
  const program = nodeProgram(`read(({ id }) => write({ type: "error", id, message: "No such city." }))`)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toMatchObject({
    message: "No such city.",
    code: "external-tool.failed",
  })
})

test.each([
  ["text on standard output", "echo debugging", 'line 1: it is no JSON ("debugging")'],
  ["a value that is no object", "echo; echo '[1]'", "line 2: it is no JSON object"],
  ["a type that is not known", `echo '{"type":"done"}'`, 'its type is "\\"done\\"", and may be metadata'],
  ["a result without output", `echo '{"type":"result","id":"x"}'`, "output: expected string, got nothing"],
  ["the id of another call", `echo '{"type":"error","id":"x","message":"m"}'`, 'its id is "x"'],
  ["bytes that are no text", `printf '\\377\\n'`, "line 1: it is no UTF-8"],
  ["a line that was cut", `printf '{"type":"res'`, "line 1: it is no JSON"],
  ["nothing", "echo why >&2; exit 3", "ended with exit code 3 and without a result"],
  ["a signal", "kill -9 $$", "ended with the signal SIGKILL and without a result"],
])("%s is an error that says where", async (_, body, message) => {
  const program = makeProgram(`#!/bin/sh\n${body}\n`)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toThrow(message)
})

test("the end of standard error is told with an end without a result", async () => {
  const program = makeProgram("#!/bin/sh\necho no token >&2\nexit 3\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toThrow("standard error ended with:\nno token")
})

test("a line without an end, and output without one, are ended at their limits", async () => {
  const program = makeProgram("#!/bin/sh\nexec yes\n")
  const endless = makeProgram("#!/bin/sh\nexec cat /dev/zero\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  const limits = { lineBytes: 1000, totalBytes: 1_000_000 }
  await expect(runProgram(endless, {}, ctx, limits)).rejects.toThrow("line 1: it is longer than 1000 bytes")
  await expect(runProgram(program, {}, ctx, limits)).rejects.toThrow('line 1: it is no JSON ("y")')
})

test("an abort is told to the program, which may clean up", async () => {
  const program = nodeProgram(`read((line) => {
    if (line.type === "call") write({ type: "metadata", id: line.id, title: "ready" })
    if (line.type !== "abort") return
    require("node:fs").writeFileSync("cleaned", "yes")
    process.exit()
  })`)
  const stop = new AbortController()
  await using ctx = fakeContext({ directory: program.host.directory, abort: stop.signal })
  const running = expect(runProgram(program, {}, ctx)).rejects.toMatchObject({ code: "aborted" })
  while (ctx.reported.length === 0) await delay(5)
  stop.abort()
  await running
  expect(readFileSync(join(program.host.directory, "cleaned"), "utf8")).toBe("yes")
})

test("a program that hangs is killed on abort, with all that it started", async () => {
  const program = makeProgram(`#!/bin/sh
trap '' TERM
sleep 1000 & echo $! > child
read -r line
id=$(printf %s "$line" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
echo "{\\"type\\":\\"metadata\\",\\"id\\":\\"$id\\"}"
while :; do sleep 1000; done
`)
  const stop = new AbortController()
  await using ctx = fakeContext({ directory: program.host.directory, abort: stop.signal })
  const running = expect(runProgram(program, {}, ctx)).rejects.toMatchObject({ code: "aborted" })
  while (ctx.reported.length === 0) await delay(5)
  stop.abort()
  await running
  expectGone(Number(readFileSync(join(program.host.directory, "child"), "utf8")))
})

test("what still runs after a result is ended, and the result holds", async () => {
  const program = nodeProgram(`read((line) => {
    const child = require("node:child_process").spawn("sleep", ["1000"], { stdio: "ignore" })
    write({ type: "result", id: line.id, output: String(child.pid) })
    setInterval(() => {}, 1000)
  })`)
  await using ctx = fakeContext({ directory: program.host.directory })
  const { output } = await runProgram(program, {}, ctx)
  expectGone(Number(output))
})

test("a program that is not among what was trusted is not run", async () => {
  const program = makeProgram("#!/bin/sh\nexit 0\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram({ ...program, pinned: new Map() }, {}, ctx)).rejects.toThrow("not what was trusted")
  expect(existsSync(program.host.copies)).toBe(false)
})

function expectGone(pid: number): void {
  expect(pid).toBeGreaterThan(1)
  // One that ended stays in the table until whoever adopted it has looked.
  const state = spawnSync("ps", ["-o", "stat=", "-p", String(pid)])
    .stdout.toString()
    .trim()
  expect(state).toMatch(/^(?:Z.*)?$/)
}
