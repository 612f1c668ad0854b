import fc from "fast-check"
import { expect, test } from "vitest"
import { mcpToolID } from "../../../src/mcp/client/tool-id.ts"

test("every id is one that providers take", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string({ maxLength: 100 }), (server, tool) => {
      expect(mcpToolID(server, tool)).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    }),
  )
})

test("long names that begin alike stay apart", () => {
  const long = "a".repeat(80)
  expect(mcpToolID("server", `${long}1`)).not.toBe(mcpToolID("server", `${long}2`))
})
