import { readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { callsOf, createMachine, endOf, type Machine, type Started, until } from "./run-tackle.ts"

const command = "echo $$ > pid; sleep 300 & echo $! >> pid; wait"

/** The prompt selects what the model does: talk slowly, run a command that never ends, or stay silent. */
async function createSlowMachine(): Promise<Machine> {
  return createMachine({
    script: ({ body }) => {
      const prompt = body.messages.findLast(({ role }) => role === "user")?.content
      if (prompt === "talk") return { text: "word ".repeat(5_000), pieceSize: 5, pieceDelayMs: 20 }
      if (prompt === "work")
        return { calls: [{ name: "bash", arguments: { command, description: "Never end" } }] }
      if (prompt === "be silent") return { fault: "hang" }
      return { text: "Here I am." }
    },
    // The command writes its process ids, which are valid only outside a sandbox.
    config: { sandbox: "off" },
  })
}

function start(machine: Machine, prompt: string): Started {
  return machine.start(["run", "--auto", "--format", "json", prompt])
}

test("ends a run with 130 on Ctrl+C and SIGTERM, whatever it is doing", async () => {
  const machine = await createSlowMachine()
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const talking = start(machine, "talk")
    await until("the first words", () => talking.stdout.includes("part.delta"))
    talking.child.kill(signal)
    const said = endOf(await talking.ended)
    expect(said).toMatchObject({ status: "interrupted", exitCode: 130, text: expect.stringMatching(/^word/) })

    const requests = machine.server.requests.length
    const waiting = start(machine, "be silent")
    await until("the request", () => machine.server.requests.length > requests)
    waiting.child.kill(signal)
    expect(endOf(await waiting.ended)).toMatchObject({ status: "interrupted", exitCode: 130, text: "" })
    expect(waiting.stderr).toBe("")
  }
})

test("ends an interrupted command with all its processes, and continues the session", async () => {
  const machine = await createSlowMachine()
  const working = start(machine, "work")
  const pids = async () =>
    (await readFile(machine.project.path("pid"), "utf8").catch(() => "")).match(/\d+/g) ?? []
  await until("both processes", async () => (await pids()).length === 2)
  working.child.kill("SIGINT")
  const ended = await working.ended
  expect(endOf(ended)).toMatchObject({ status: "interrupted", exitCode: 130 })
  expect(callsOf(ended)).toMatchObject([["bash", "error", expect.stringContaining("aborted")]])
  for (const pid of await pids())
    await until(`process ${pid} to be gone`, async () => !(await isRunning(pid)))

  const next = await machine.run(["run", "-c", "are you there?"])
  expect(next).toMatchObject({ code: 0, stdout: "Here I am.\n" })
  const told = machine.server.requests.at(-1)?.body.messages.find(({ role }) => role === "tool")
  expect(told?.content).toMatch(/^Error: /)
})

test.skipIf(process.platform !== "linux")("ends processes of a killed run at the next start", async () => {
  const machine = await createMachine({
    script: ({ body }) =>
      body.messages.some(({ role }) => role === "tool")
        ? { text: "words", pieceSize: 1, pieceDelayMs: 60_000 }
        : {
            calls: [
              { name: "bash", arguments: { command: "sleep 300 & echo $! >pid", description: "Leave" } },
            ],
          },
    // A sandbox would end together with the killed run.
    config: { sandbox: "off" },
  })
  const killed = start(machine, "leave something")
  await until("the job to be left behind", () => killed.stdout.includes("continues in the background"))
  killed.child.kill("SIGKILL")
  await killed.ended
  const pid = (await readFile(machine.project.path("pid"), "utf8")).trim()
  expect(await isRunning(pid)).toBe(true)

  expect(await machine.run(["session", "list"])).toMatchObject({ code: 0, stderr: "" })
  await until(`process ${pid} to be gone`, async () => !(await isRunning(pid)))
})

/** Returns false for a zombie too. */
async function isRunning(pid: string): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  return status !== "" && !/\) Z /.test(status)
}

test("exits at once on a second Ctrl+C", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/stubborn.ts": `
        import { z } from "zod"
        export default {
          description: "Takes no notice of anything.",
          args: {},
          execute: () => new Promise(() => setInterval(() => {}, 1000)),
        }`,
    },
    script: [{ calls: [{ name: "stubborn", arguments: {} }] }],
  })
  const run = machine.start(["run", "--trust", "--auto", "--format", "json", "go"])
  await until("the call runs", () => run.stdout.includes('"status":"running"'))
  run.child.kill("SIGINT")
  await new Promise((next) => setTimeout(next, 100))
  run.child.kill("SIGINT")
  expect(await run.ended).toMatchObject({ code: 130 })
  // The call has not ended.
  expect(run.stdout).not.toContain('"status":"error"')
  expect(run.stdout).toMatch(/"run\.completed".*"status":"interrupted","exitCode":130.*\n$/)
})
