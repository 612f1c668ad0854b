import { mkdir, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { callsOf, createMachine, endOf, eventsOf, only, until, useOwnProcesses } from "./run-tackle.ts"

const script: Reply[] = [{ calls: [{ name: "own", arguments: {} }] }, { text: "Done." }]

/** A machine whose user has a tool `own` with this body. `before` is code at the top of its file. */
async function machineWithTool(body: string, { before = "" } = {}) {
  useOwnProcesses()
  const machine = await createMachine({ config: { permission: { "*": "allow" } }, script })
  const folder = `${machine.home}/config/tackle/tool`
  await mkdir(folder, { recursive: true })
  const text = `${before}\nexport default { description: "Own.", args: {}, execute: async () => {\n${body}\n} }\n`
  await writeFile(`${folder}/own.ts`, text)
  return machine
}

test.each([
  ["in its function", "process.exit(0)"],
  ["in a block that catches its exceptions", 'try { process.exit(0) } catch {}\nreturn "fine"'],
  ["in a timer", "setTimeout(() => process.exit(0), 1)\nreturn new Promise(() => {})"],
  ["in a rejection handler", "return Promise.reject(1).catch(() => process.exit())"],
])("ends only the call if a tool calls process.exit %s", async (_, body) => {
  const machine = await machineWithTool(body)
  const run = await machine.run(["run", "--format", "json", "go"])
  expect(endOf(run)).toMatchObject({ status: "completed", exitCode: 0, text: "Done." })
  expect(callsOf(run)).toEqual([["own", "error", expect.stringMatching(/process\.exit\(0?\) was called/)]])
})

test("reports a tool file that calls process.exit while it loads, and continues", async () => {
  const machine = await machineWithTool('return "fine"', { before: "process.exit(0)" })
  const run = await machine.run(["run", "--format", "json", "go"])
  expect(endOf(run)).toMatchObject({ status: "completed", text: "Done." })
  expect(run.stderr).toMatch(/own\.ts.*process\.exit\(0\) was called/)
})

test("keeps the run alive while a tool does not settle, until it is interrupted", async () => {
  const machine = await machineWithTool("return new Promise(() => {})")
  const started = machine.start(["run", "--format", "json", "go"])
  await until("the call runs", () => /"status":"running"/.test(started.stdout))
  started.child.kill("SIGINT")
  const run = await started.ended
  expect(endOf(run)).toMatchObject({ status: "interrupted", exitCode: 130 })
  expect(run.code).toBe(130)
})

test("stops a tool that does not settle at the time limit of the run", async () => {
  const machine = await machineWithTool("return new Promise(() => {})")
  const run = await machine.run(["run", "--format", "json", "--timeout", "2", "go"])
  expect(endOf(run)).toMatchObject({ status: "limit", exitCode: 4 })
  expect(only(eventsOf(run), "run.completed")).toHaveLength(1)
})

test("exits with 1 if other code ends the process with code 0", async () => {
  const machine = await machineWithTool(
    'const { stringify } = JSON\nJSON.stringify = () => { JSON.stringify = stringify; process.exit(0) }\nreturn "fine"',
  )
  const run = await machine.run(["run", "--format", "json", "go"])
  expect(run.code).toBe(1)
  expect(run.stderr).toContain("the process ended before the command was complete")
})
