import { expect, test } from "vitest"
import { ClientError } from "../../src/client/errors.ts"
import { errorText } from "../../web/errors.ts"

test.each([
  ["Cannot undo the turn:\n  a: it has been changed\nCheck these files first.", "it has been changed"],
  ["Cannot undo the turn: the disk is full.", "the disk is full."],
])("shows the error of an undo without the advice for clients of the API", (message, end) => {
  const text = errorText(new ClientError(message, { code: "session.undo" }))
  expect(text).toMatch(/^Cannot undo the turn:/)
  expect(text.endsWith(end)).toBe(true)
})
