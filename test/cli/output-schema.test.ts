import { expect, test } from "vitest"
import { createMachine, endOf } from "./run-tackle.ts"

const schema = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] }
const args = ["run", "--output-schema", "count.json", "how many?"]

test("prints only the JSON to stdout, on one line, and the model's text to stderr", async () => {
  const machine = await createMachine({
    files: { "count.json": JSON.stringify(schema) },
    script: [
      { text: "Let me look.", calls: [{ name: "list", arguments: { path: "." } }] },
      { calls: [{ name: "final_answer", arguments: { count: 1 } }] },
    ],
  })
  const run = await machine.run(args)
  expect(run).toMatchObject({ code: 0, stdout: '{"count":1}\n' })
  expect(run.stderr).toContain("Let me look.")
})

test("exits with 1, an empty stdout and the reason when the answer never matches the schema", async () => {
  const machine = await createMachine({
    files: { "count.json": JSON.stringify(schema) },
    script: () => ({ text: '{"count":"one"}' }),
  })
  const run = await machine.run(args)
  expect(run).toMatchObject({ code: 1, stdout: "" })
  expect(run.stderr).toContain('after 3 attempts: count: expected number, got "one"')
  expect(machine.server.requests).toHaveLength(3)
})

test("returns the JSON as the text of the last event in JSON mode", async () => {
  const machine = await createMachine({
    files: { "count.json": JSON.stringify(schema) },
    script: [{ calls: [{ name: "final_answer", arguments: { count: 1 } }] }],
  })
  const run = await machine.run([...args, "--format", "json"])
  expect(endOf(run)).toMatchObject({ status: "completed", text: '{"count":1}' })
})

test("reports a missing file or an invalid schema as a usage error", async () => {
  const machine = await createMachine({ files: { "count.json": "[]" } })
  expect(await machine.run(args)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected an object"),
  })
  await machine.project.write("count.json", '{"type":"strnig"}')
  expect(await machine.run(args)).toMatchObject({ code: 2, stderr: expect.stringContaining("strnig") })
  const missing = await machine.run(["run", "--output-schema", "none.json", "go"])
  expect(missing).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Cannot read the output schema none.json"),
  })
  expect(machine.server.requests).toHaveLength(0)
})

test("creates no session for an unusable schema and names its file", async () => {
  const machine = await createMachine({ files: { "count.json": '{"type":"strng"}' } })
  expect(await machine.run(args)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^tackle: Invalid output schema count\.json: .*strng/),
  })
  expect((await machine.run(["session", "list"])).stdout).toBe("No sessions yet.\n")
})
