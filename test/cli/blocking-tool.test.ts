import { existsSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { isComplete } from "../runs.ts"
import type { Ended } from "./run-shared.ts"
import { createMachine, type Machine, until, useOwnProcesses } from "./run-tackle.ts"

const endless = {
  "an endless loop that catches everything": 'for (;;) { try { JSON.parse("{") } catch {} }',
  "an endless loop of promises": "for (;;) await null",
  "an endless loop in a timer": "await new Promise(() => setTimeout(() => { for (;;) {} }, 1))",
  "a regular expression with catastrophic backtracking": '/^(a+)+$/.test("a".repeat(60) + "b")',
  "a wait for another thread": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
}

/** Blocks the process like an endless loop, but without using a processor. */
const blocked = endless["a wait for another thread"]

/** A machine whose model calls the tool `own`. The tool has this body and creates the file `begun` first. */
async function machineWithTool(body: string, { fields = "", top = "" } = {}): Promise<Machine> {
  useOwnProcesses()
  const machine = await createMachine({
    config: { permission: { "*": "allow" } },
    script: [{ calls: [{ name: "own", arguments: {} }] }, { text: "Done." }],
  })
  const folder = `${machine.home}/config/tackle/tool`
  await mkdir(folder, { recursive: true })
  await writeFile(
    `${folder}/own.ts`,
    `import { writeFileSync } from "node:fs"
    ${top}
    import { Tool } from "tackle/tool"
    import { z } from "zod"
    export default Tool.define("own", { description: "Own.", parameters: z.object({}), ${fields} async execute(args, ctx) {
      writeFileSync(ctx.directory + "/begun", "");
      ${body}
      return { title: "own", output: "fine", metadata: {} }
    } })`,
  )
  return machine
}

/** Starts a run and waits until the tool has begun. After that, the tool does not return to the event loop. */
async function startBlocked(machine: Machine, flags: readonly string[] = []) {
  const run = machine.start(["run", "--format", "json", ...flags, "go"])
  await until("the tool to begin", () => existsSync(machine.project.path("begun")))
  // The tool blocks right after it has created the file.
  await new Promise((next) => setTimeout(next, 200))
  return run
}

/** All of them take the same way through the process, so a short run tries three. */
const tried = Object.entries(endless).slice(isComplete ? 0 : 2)

test.each(tried)("ends a run blocked by %s at SIGTERM", async (_, body) => {
  const run = await startBlocked(await machineWithTool(body))
  run.child.kill("SIGTERM")
  expectEnded(await run.ended)
})

function expectEnded(ended: Ended): void {
  expect(ended.stderr).toMatch(
    /^tackle: Received SIGTERM\. A tool or plugin is blocking the process.* To continue the session: .*tackle run -c "…"\n$/,
  )
  expect(ended).toMatchObject({ code: 130, signal: null })
}

test("does not name a session when it ends a blocked call without a session", async () => {
  const machine = await machineWithTool(blocked)
  const call = machine.start(["tool", "call", "own"])
  await until("the tool to begin", () => existsSync(machine.project.path("begun")))
  call.child.kill("SIGTERM")
  expect(await call.ended).toMatchObject({
    code: 130,
    stderr:
      "tackle: Received SIGTERM. A tool or plugin is blocking the process, so the process will now end.\n",
  })
})

test("ends a blocked run at the second Ctrl+C, and says so at the first", async () => {
  const run = await startBlocked(await machineWithTool(blocked))
  run.child.kill("SIGINT")
  await until("the notice", () => /Press Ctrl\+C again/.test(run.stderr))
  run.child.kill("SIGINT")
  expect(await run.ended).toMatchObject({ code: 130, stderr: expect.stringContaining("Received SIGINT.") })
})

test("ends a blocked run at the time limit of the tool", async () => {
  const machine = await machineWithTool(blocked, { fields: "timeout: 300," })
  const run = await machine.run(["run", "--format", "json", "go"])
  expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("did not finish within 300 ms") })
})

test("ends a blocked run at the time limit of the run", async () => {
  const machine = await machineWithTool(blocked)
  const run = await machine.run(["run", "--format", "json", "--timeout", "2", "go"])
  expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("the --timeout limit of 2 s") })
})

test("kills a run that is blocked by a synchronous command", async () => {
  const machine = await machineWithTool('execSync("sleep 60")', {
    top: 'import { execSync } from "node:child_process"',
  })
  const run = await startBlocked(machine)
  run.child.kill("SIGTERM")
  expect(await run.ended).toMatchObject({
    signal: "SIGKILL",
    stderr: expect.stringContaining("Received SIGTERM."),
  })
})

test("ends a run that is blocked by a plugin", async () => {
  const machine = await machineWithTool("")
  await mkdir(`${machine.home}/config/tackle/plugin`)
  await writeFile(
    `${machine.home}/config/tackle/plugin/own.ts`,
    `import { writeFileSync } from "node:fs"
    export const Own = async ({ directory }) => ({
      "tool.execute.before": async () => { writeFileSync(directory + "/begun", ""); ${blocked} },
    })`,
  )
  const run = await startBlocked(machine)
  run.child.kill("SIGTERM")
  expect(await run.ended).toMatchObject({ code: 130, stderr: expect.stringContaining("Received SIGTERM.") })
})

test("continues the session of a run that was blocked and ended", async () => {
  const machine = await machineWithTool(blocked)
  const run = await startBlocked(machine)
  run.child.kill("SIGTERM")
  expectEnded(await run.ended)
  expect(await machine.run(["run", "-c", "more"])).toMatchObject({ code: 0, stdout: "Done.\n" })
})

test("lets a tool finish that blocks for a second without a limit", async () => {
  const machine = await machineWithTool("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)")
  expect(await machine.run(["run", "go"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Done."),
  })
})
