import { cpSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { callsOf, createMachine, type Machine, runDoctor } from "../cli/run-tackle.ts"

const example = resolve(import.meta.dirname, "../../examples/agents-and-commands")

async function openExample(script: Script = []): Promise<Machine> {
  const machine = await createMachine({ git: true, script })
  cpSync(example, machine.project.directory, { recursive: true })
  await machine.trust()
  return machine
}

const messages = ({ server }: Machine, index: number) =>
  (server.requests[index]?.body.messages ?? []).map(({ content }) => JSON.stringify(content))

test("lists the agents of both programs and reports unknown fields once", async () => {
  const machine = await openExample()
  const list = await machine.run(["agent", "list"])
  expect(list.stderr).toBe("")
  expect(list.stdout).toMatch(/^reviewer +all, \.tackle\/agent\/reviewer\.md/m)
  expect(list.stdout).toMatch(/^finder +all, \.claude\/agents\/finder\.md +Finds where something is done:/m)
  const { stdout } = await runDoctor(machine)
  expect(stdout).toMatch(/! agents .*finder\.md.*agent\.finder\.color.*"haiku"/)
  expect(stdout).toMatch(
    /other programs +\.claude: agents \.claude\/agents\/finder\.md\. \.opencode: commands \.opencode\/command\/where\.md/,
  )
})

test("/review runs the reviewer with the file and the command output, without tools that write", async () => {
  const machine = await openExample([
    { calls: [{ name: "read", arguments: { filePath: "src/price.py" } }] },
    { text: "Line 3 gives fractions." },
  ])
  const run = await machine.run(["run", "--format", "json", "/review src/price.py rounding"])
  expect(run.code).toBe(0)
  const first = messages(machine, 0)
  const [system = "", prompt = ""] = [first[0], first.at(-1)]
  expect(system).toContain("You review changes.")
  expect(prompt).toMatch(/above all rounding\..*Its size: 3 src\/price\.py/)
  expect(prompt).toContain("with_tax")
  expect(machine.server.requests[0]?.body.tools?.map((tool) => tool.function.name)).not.toContain("edit")
  expect(callsOf(run).map(([tool, status]) => `${tool} ${status}`)).toEqual([
    "bash completed",
    "read completed",
  ])
  expect(prompt + messages(machine, 1).join("\n")).toContain("whole numbers of cents")
})

test("/where runs the finder, which only reads and searches", async () => {
  const machine = await openExample([{ text: "src/price.py:1" }, { text: "In src/price.py." }])
  expect(await machine.run(["run", "/where tax is added"])).toMatchObject({
    code: 0,
    stdout: "In src/price.py.\n",
  })
  const first = messages(machine, 0)
  const [system = "", prompt = ""] = [first[0], first.at(-1)]
  expect(system).toContain("You find places in the code.")
  expect(prompt).toContain("Where is this done: tax is added")
  expect(machine.server.requests[0]?.body.tools?.map((tool) => tool.function.name).sort()).toEqual([
    "glob",
    "grep",
    "read",
  ])
  expect(messages(machine, 1).at(-1)).toContain("src/price.py:1")
})

test("/notes:add runs the prompt of a file in a folder", async () => {
  const machine = await openExample([{ text: "Added." }])
  await machine.run(["run", "/notes:add buy milk"])
  expect(messages(machine, 0).at(-1)).toContain("at the end of NOTES.md: buy milk")
})
