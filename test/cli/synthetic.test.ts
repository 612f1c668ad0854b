import { expect, test } from "vitest"
import { type DialectName, dialectNames } from "../../src/synthetic/dialect.ts"
import { dialectNamed } from "../../src/synthetic/dialects.ts"
import { createMachine, type Machine } from "./run-tackle.ts"

/** Returns the environment whose config sets how the scripted model `test/m` calls tools. */
function told(machine: Machine, model: Record<string, unknown>) {
  const provider = { test: { options: { baseURL: machine.server.url, apiKey: "k" }, models: { m: model } } }
  return { env: { TACKLE_CONFIG_CONTENT: JSON.stringify({ model: "test/m", provider }) } }
}

function edits(dialect: DialectName) {
  const { write } = dialectNamed(dialect)
  return [
    { text: `I will look.\n\n${write("read", { filePath: "notes.txt" })}`, pieceSize: 5 },
    {
      text: write("edit", { filePath: "notes.txt", oldString: 'say "seven"\n', newString: 'say "eight"\n' }),
      pieceSize: 3,
    },
    { text: "It says eight now." },
  ]
}

test.each(dialectNames)("reads and edits a file by text for a model without tools: %s", async (dialect) => {
  const machine = await createMachine({ files: { "notes.txt": 'say "seven"\n' }, script: edits(dialect) })
  const options = told(machine, { tool_call: false, toolDialect: dialect })
  const run = await machine.run(["run", "--auto", "make it eight"], options)
  // A slow call is shown with its duration.
  expect(run.stderr).toMatch(/^✓ read notes\.txt · 1 line( · [\d.]+ s)?$/m)
  expect(run.stderr).toMatch(/^✓ edit notes\.txt · \+1 −1( · [\d.]+ s)?$/m)
  expect(run).toMatchObject({ code: 0, stdout: "I will look.\n\nIt says eight now.\n" })
  expect(await machine.project.read("notes.txt")).toBe('say "eight"\n')
  const [first, second] = machine.server.requests
  expect(machine.server.requests.every(({ body }) => body.tools === undefined)).toBe(true)
  expect(JSON.stringify(first?.body.messages)).toContain("oldString")
  expect(second?.body.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
  expect(JSON.stringify(second?.body.messages.at(-1))).toContain("seven")
})

test("remembers a server's first refusal for later runs, until it is reset", async () => {
  const machine = await createMachine({
    files: { "notes.txt": 'say "seven"\n' },
    script: ({ body }) => {
      if (body.tools) return { status: 400, text: '"m" does not support tools' }
      const asked = body.messages.filter(({ role }) => role === "assistant").length
      return edits("hermes")[asked] ?? { text: "Done." }
    },
  })
  const withTools = () => machine.server.requests.filter(({ body }) => body.tools !== undefined).length
  expect(await machine.run(["run", "--auto", "make it eight"])).toMatchObject({ code: 0 })
  expect(await machine.project.read("notes.txt")).toBe('say "eight"\n')
  expect(withTools()).toBe(1)
  await machine.run(["run", "--auto", "again"])
  expect(withTools()).toBe(1)
  expect((await machine.run(["models"])).stdout).toContain("test/m  m, tools as text")
  const forgotten = await machine.run(["models", "--forget-tools", "test/m"])
  expect(forgotten).toMatchObject({ code: 0, stdout: "Tools will be offered to test/m again.\n" })
  await machine.run(["run", "--auto", "again"])
  expect(withTools()).toBe(2)
})

test("ends the run where tools are rejected, names the key to change, and sends nothing", async () => {
  const machine = await createMachine()
  const run = await machine.run(["run", "--auto", "hello"], told(machine, { toolCalling: "reject" }))
  expect(run).toMatchObject({ code: 2, stdout: "" })
  expect(run.stderr).toMatch(/provider\.test\.models\.m\.toolCalling is "reject"/)
  expect(machine.server.requests).toHaveLength(0)
})

test("records the repairs of a call", async () => {
  const machine = await createMachine({
    files: { "notes.txt": "seven\n" },
    script: [
      { text: "<tool_call>{'name': 'read', 'arguments': {'filePath': 'notes.txt'}}</tool_call>" },
      { text: "Done." },
    ],
  })
  const options = told(machine, { toolCalling: "synthetic" })
  const run = await machine.run(["run", "--auto", "--format", "json", "read"], options)
  expect(run.stdout).toContain("the call was not valid JSON")
})
