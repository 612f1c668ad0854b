import { expect, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"
import { invalidCallMessage, invalidTool } from "../../src/tools/invalid.ts"

test("names the call, the error and the available tools", () => {
  expect(
    invalidCallMessage({ tool: "raed", error: "this tool does not exist", available: ["read", "write"] }),
  ).toBe('Invalid call to "raed": this tool does not exist.\nAvailable tools: read, write.')
  expect(invalidCallMessage({ tool: "read", error: "Not JSON!", available: [] })).toBe(
    'Invalid call to "read": Not JSON!',
  )
})

test("always throws a recoverable error and asks for nothing", async () => {
  const ctx = fakeContext({ directory: "/" })
  const tool = await invalidTool.init()
  await expect(tool.execute({ tool: "x", error: "no" }, ctx)).rejects.toMatchObject({
    code: "invalid-call",
    recoverable: true,
    message: 'Invalid call to "x": no.',
  })
  expect(ctx.asked).toEqual([])
})
