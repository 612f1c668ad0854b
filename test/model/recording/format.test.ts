import { expect, test } from "vitest"
import { MentionsLine } from "../../../src/model/recording/format.ts"

test("reads the source of a refusal in an older recording", () => {
  const refusal = { tool: "read", callID: "call_1", permission: "read", patterns: [".env"], reason: "no" }
  const line = { type: "mentions", files: [], notes: [], refused: [{ ...refusal, by: "person" }] }
  expect(MentionsLine.parse(line).refused).toEqual([{ ...refusal, by: "user" }])
})
