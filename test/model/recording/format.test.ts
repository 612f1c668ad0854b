import { expect, test } from "vitest"
import { MentionsLine } from "../../../src/model/recording/format.ts"

test('reads a refusal by "person" in an old recording as one by "user"', () => {
  const refusal = { tool: "read", callID: "call_1", permission: "read", patterns: [".env"], reason: "no" }
  const line = { type: "mentions", files: [], notes: [], refused: [{ ...refusal, by: "person" }] }
  expect(MentionsLine.parse(line).refused).toEqual([{ ...refusal, by: "user" }])
})
