import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("reports an unknown argument of tool call, and makes the call", async () => {
  const machine = await createMachine({ files: { "a.txt": "one\ntwo\n" }, config: null })
  const call = await machine.run(["tool", "call", "read", '{"filePath":"a.txt","ofset":1,"toString":2}'])
  expect(call).toMatchObject({ code: 0, stdout: expect.stringContaining("1→one") })
  expect(call.stderr.split("\n").slice(0, 2)).toEqual([
    'tackle: read: unknown argument "ofset". Did you mean "offset"?',
    'tackle: read: unknown argument "toString". Available arguments: filePath, offset, limit.',
  ])
  const wrong = await machine.run(["tool", "call", "read", "-", "--format", "json"], {
    stdin: '{"target":"a.txt"}',
  })
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('unknown argument "target". Available arguments: filePath')
  expect(JSON.parse(wrong.stdout)).toMatchObject({ status: "error" })
})
