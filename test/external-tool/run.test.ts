import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { expect, test } from "vitest"
import { runProgram } from "../../src/external-tool/run.ts"
import { PermissionError } from "../../src/permission/errors.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { makeProgram, nodeProgram } from "./make-program.ts"

test("returns a result with title, metadata and attachments", async () => {
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

test("passes an ask to the engine and returns the reply", async () => {
  const program = nodeProgram(asking)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).resolves.toMatchObject({ output: "written" })
  expect(ctx.asked).toEqual([{ permission: "edit", patterns: ["x.txt"], paths: ["x.txt"] }])
})

test("fails with the refusal if the program ends because of it", async () => {
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

test("returns an error line to the model", async () => {
  const program = nodeProgram(`read(({ id }) => write({ type: "error", id, message: "No such city." }))`)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toMatchObject({
    message: "No such city.",
    code: "external-tool.failed",
  })
})

test.each([
  ["text", "echo debugging", 'line 1: it is not JSON ("debugging")'],
  ["a value that is not an object", "echo; echo '[1]'", "line 2: it is not a JSON object"],
  ["an unknown type", `echo '{"type":"done"}'`, 'its type is "done"; allowed types: metadata'],
  ["a result without output", `echo '{"type":"result","id":"x"}'`, "output: expected string, got nothing"],
  ["the id of another call", `echo '{"type":"error","id":"x","message":"m"}'`, 'its id is "x"'],
  ["invalid UTF-8", `printf '\\377\\n'`, "line 1: it is not UTF-8"],
  ["a cut line", `printf '{"type":"res'`, "line 1: it is not JSON"],
  ["nothing", "echo why >&2; exit 3", "ended with exit code 3 and returned no result"],
  ["a signal", "kill -9 $$", "ended with the signal SIGKILL and returned no result"],
])("rejects output with its location: %s", async (_, body, message) => {
  const program = makeProgram(`#!/bin/sh\n${body}\n`)
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toThrow(message)
})

test("shows the end of stderr if the program exits without a result", async () => {
  const program = makeProgram("#!/bin/sh\necho no token >&2\nexit 3\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram(program, {}, ctx)).rejects.toThrow("The end of its stderr:\nno token")
})

test("limits the length of a line and of the output", async () => {
  const program = makeProgram("#!/bin/sh\nexec yes\n")
  const endless = makeProgram("#!/bin/sh\nexec cat /dev/zero\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  const limits = { lineBytes: 1000, totalBytes: 1_000_000 }
  await expect(runProgram(endless, {}, ctx, limits)).rejects.toThrow("line 1: it is longer than 1000 bytes")
  await expect(runProgram(program, {}, ctx, limits)).rejects.toThrow('line 1: it is not JSON ("y")')
})

test("sends an abort to the program, which can clean up", async () => {
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

test("kills a hanging program and its children on abort", async () => {
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

test("ends processes that still run after the result", async () => {
  const program = nodeProgram(`read((line) => {
    const child = require("node:child_process").spawn("sleep", ["1000"], { stdio: "ignore" })
    write({ type: "result", id: line.id, output: String(child.pid) })
    setInterval(() => {}, 1000)
  })`)
  await using ctx = fakeContext({ directory: program.host.directory })
  const { output } = await runProgram(program, {}, ctx)
  expectGone(Number(output))
})

test("does not run a program that is not trusted", async () => {
  const program = makeProgram("#!/bin/sh\nexit 0\n")
  await using ctx = fakeContext({ directory: program.host.directory })
  await expect(runProgram({ ...program, pinned: new Map() }, {}, ctx)).rejects.toThrow("is not trusted")
  expect(existsSync(program.host.copies)).toBe(false)
})

function expectGone(pid: number): void {
  expect(pid).toBeGreaterThan(1)
  // A process that has ended stays in the table until its new parent collects it.
  const state = spawnSync("ps", ["-o", "stat=", "-p", String(pid)])
    .stdout.toString()
    .trim()
  expect(state).toMatch(/^(?:Z.*)?$/)
}
