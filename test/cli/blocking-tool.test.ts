import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { readProcessTable } from "../../src/util/process-table.ts"
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
  expect(lastEvent(run)).toMatchObject({
    ...{ type: "run.completed", status: "limit", exitCode: 4 },
    messageIDs: [expect.stringMatching(/^msg_/)],
  })
})

/** Programs that wait for ten minutes. The shell waits for both, and the second leaves its group. */
const synchronous = 'execSync("sleep 600.31 & setsid sleep 600.31; wait")'

test("ends a run that is blocked by a synchronous command, with its programs", async () => {
  const top = 'import { execSync } from "node:child_process"'
  const stopped = await startBlocked(await machineWithTool(synchronous, { top }))
  expect(programs("600.31")).not.toEqual([])
  stopped.child.kill("SIGTERM")
  expect(await stopped.ended).toMatchObject({
    code: 130,
    stderr: expect.stringContaining("Received SIGTERM."),
  })
  expect(programs("600.31")).toEqual([])

  const machine = await machineWithTool(`for (;;) try { ${synchronous} } catch {}`, { top })
  const run = await machine.run(["run", "--format", "json", "--timeout", "2", "go"])
  expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("the --timeout limit of 2 s") })
  expect(lastEvent(run)).toMatchObject({ type: "run.completed", status: "limit", exitCode: 4 })
  expect(programs("600.31")).toEqual([])
})

function lastEvent({ stdout }: Ended): unknown {
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "")
}

/** Returns the ids of the processes with this argument. */
function programs(argument: string): number[] {
  return readProcessTable()
    .filter(({ pid, alive }) => alive && argumentsOf(pid).includes(argument))
    .map(({ pid }) => pid)
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}

test("ends a run at its time limit while a tool file loads in an endless loop", async () => {
  const machine = await machineWithTool("", { top: "for (;;) {}" })
  const run = await machine.run(["run", "--format", "json", "--timeout", "1", "go"])
  expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("the --timeout limit of 1 s") })
})

test("ends the programs that a tool started, at the end and after a kill", async () => {
  const top = 'import { spawn, execSync } from "node:child_process"'
  const start = (body: string) =>
    machineWithTool(
      `spawn("sleep", ["600.32"], { detached: true, stdio: "ignore" }).unref()
      spawn("sleep", ["600.32"], { detached: true, stdio: "ignore", env: {} }).unref()
      execSync("setsid -f sleep 600.32 >/dev/null 2>&1 </dev/null")
      await new Promise((next) => setTimeout(next, 100)); ${body}`,
      { top },
    )
  const machine = await start("")
  expect(await machine.run(["run", "go"])).toMatchObject({ code: 0 })
  expect(programs("600.32")).toEqual([])

  const killed = await start("await new Promise(() => {})")
  const run = await startBlocked(killed)
  await until("the programs to start", () => programs("600.32").length === 3)
  run.child.kill("SIGKILL")
  await run.ended
  expect(programs("600.32")).toHaveLength(3)
  expect(await killed.run(["tool", "call", "list", "{}"])).toMatchObject({ code: 0 })
  await until("the programs to end", () => programs("600.32").length === 0)
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
