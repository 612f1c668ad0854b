import { copyFileSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { callsOf, createMachine, endOf, eventsOf, type Machine, only, until } from "./run-tackle.ts"

const ways: [string, (data: string) => void, string][] = [
  ["database was removed", removeDatabase, "tackle.db was removed or moved while it was open"],
  ["data directory was removed", removeData, "tackle.db was removed or moved while it was open"],
  [
    "data directory was moved",
    (data) => renameSync(data, `${data}.old`),
    "tackle.db was removed or moved while it was open",
  ],
  ["database was replaced", replaceDatabase, "tackle.db was replaced by another file while it was open"],
  [
    "log of the database was removed",
    removeLog,
    "tackle.db-wal of the database was removed or moved while it",
  ],
]

function removeData(data: string): void {
  rmSync(data, { recursive: true })
}

function removeDatabase(data: string): void {
  for (const name of readdirSync(data)) if (name.startsWith("tackle.db")) rmSync(join(data, name))
}

function removeLog(data: string): void {
  rmSync(join(data, "tackle.db-wal"))
}

function replaceDatabase(data: string): void {
  copyFileSync(join(data, "tackle.db"), join(data, "copy"))
  renameSync(join(data, "copy"), join(data, "tackle.db"))
}

const config = { permission: { "*": "allow" }, sandbox: "off" }

/** Runs until the file `gone` exists. */
const wait: Reply = {
  calls: [
    {
      name: "bash",
      arguments: {
        command:
          "touch begun; until [ -e gone ] || [ ! -e begun ]; do sleep 0.02; done; echo a; sleep 0.2; echo b",
        description: "Wait",
      },
    },
  ],
}

/** Answers the prompt "before" with a text, and any other prompt with a command that waits. */
function script({ body }: RecordedRequest): Reply {
  const last = body.messages.at(-1)
  if (last?.role === "user")
    return JSON.stringify(last.content).includes("before") ? { text: "Ready." } : wait
  return { text: "The end." }
}

/** Starts a run, and calls `change` while its command runs. */
async function runDuring(machine: Machine, args: readonly string[], change: (data: string) => void) {
  const run = machine.start(args)
  await until("the command to begin", () => existsSync(machine.project.path("begun")))
  change(machine.data)
  await machine.project.write("gone", "")
  return run.ended
}

/** Expects one line about the database, and nothing that looks like a defect. */
function expectOneLine(stderr: string, machine: Machine, what: string): void {
  const lines = stderr.split("\n").filter((line) => /database|store/.test(line))
  expect(lines).toEqual([
    expect.stringMatching(/^✗ The (database|log) \S+ .*so nothing more can be stored\. .*estart Tackle\.$/),
  ])
  expect(lines[0]).toContain(join(machine.data, what))
  expect(stderr).not.toMatch(/tackle:|\n +at |continue with/)
}

test.each(ways)("ends a run with one line and exit code 1: the %s", async (_, change, what) => {
  const machine = await createMachine({ config, script })
  const run = await runDuring(machine, ["run", "go"], change)
  expect(run).toMatchObject({ code: 1, signal: null, stdout: "" })
  expectOneLine(run.stderr, machine, what)
  expect(await machine.run(["run", "before"])).toMatchObject({ code: 0, stdout: "Ready.\n" })
})

test.each(ways.slice(1, 4))("ends a continued session in the same way: the %s", async (_, change, what) => {
  const machine = await createMachine({ config, script })
  expect(await machine.run(["run", "before"])).toMatchObject({ code: 0 })
  const run = await runDuring(machine, ["run", "-c", "go"], change)
  expect(run).toMatchObject({ code: 1, signal: null, stdout: "" })
  expectOneLine(run.stderr, machine, what)
})

test("announces no state that is lost, and names the error for programs", async () => {
  const machine = await createMachine({ config, script })
  const run = await runDuring(machine, ["run", "--format", "json", "go"], removeData)
  expect(run.stderr).toBe("")
  expect(endOf(run)).toMatchObject({ status: "failed", exitCode: 1 })
  expect(callsOf(run)).toMatchObject([["bash", "running", ""]])
  expect(only(eventsOf(run), "session.error")).toMatchObject([{ error: { name: "store.removed" } }])
})

test("stops a command that still prints", async () => {
  const machine = await createMachine({
    config,
    script: [
      {
        calls: [
          {
            name: "bash",
            arguments: {
              command: "touch begun; while true; do echo a; sleep 0.05; done",
              description: "Print",
            },
          },
        ],
      },
    ],
  })
  const run = await runDuring(machine, ["run", "go"], removeData)
  expect(run).toMatchObject({ code: 1, signal: null, stdout: "" })
  expectOneLine(run.stderr, machine, "tackle.db was removed or moved")
})

test.each([1, 2])("notices a removal during answer %i", async (answer) => {
  let requests = 0
  const machine = await createMachine({
    config,
    script() {
      requests += 1
      if (requests === answer) removeData(machine.data)
      return requests === 1
        ? { calls: [{ name: "bash", arguments: { command: "echo", description: "Print" } }] }
        : { text: "The end." }
    },
  })
  const run = await machine.run(["run", "go"])
  expect(run).toMatchObject({ code: 1, stdout: "" })
  expectOneLine(run.stderr, machine, "tackle.db was removed or moved")
})

test("notices a removal while a subagent works", async () => {
  const machine = await createMachine({
    config,
    script({ body }) {
      if (body.messages.at(-1)?.role !== "user") return { text: "The end." }
      if (JSON.stringify(body.messages).includes("the part")) return wait
      const part = { description: "a part", prompt: "Do the part.", subagent_type: "general" }
      return { calls: [{ name: "task", arguments: part }] }
    },
  })
  const run = await runDuring(machine, ["run", "go"], removeData)
  expect(run).toMatchObject({ code: 1, stdout: "" })
  expectOneLine(run.stderr, machine, "tackle.db was removed or moved")
})
