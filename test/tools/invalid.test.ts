import { expect, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"
import { invalidCallMessage, invalidTool } from "../../src/tools/invalid.ts"

test("names the call, the fault and the tools there are", () => {
  expect(
    invalidCallMessage({ tool: "raed", error: "there is no such tool", available: ["read", "write"] }),
  ).toBe(
    'The call to "raed" could not be used: there is no such tool.\nTools that can be called: read, write.',
  )
  expect(invalidCallMessage({ tool: "read", error: "Not JSON!", available: [] })).toBe(
    'The call to "read" could not be used: Not JSON!',
  )
})

test("ends every call as a recoverable error and asks for nothing", async () => {
  const ctx = fakeContext({ directory: "/" })
  const tool = await invalidTool.init()
  await expect(tool.execute({ tool: "x", error: "no" }, ctx)).rejects.toMatchObject({
    code: "invalid-call",
    recoverable: true,
    message: 'The call to "x" could not be used: no.',
  })
  expect(ctx.asked).toEqual([])
})
