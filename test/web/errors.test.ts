import { expect, test } from "vitest"
import { ClientError } from "../../src/client/errors.ts"
import { errorText, refusedFiles } from "../../web/errors.ts"

test.each([
  ["Cannot undo the turn:\n  a: it has been changed\nCheck these files first.", "it has been changed"],
  ["Cannot undo the turn: the disk is full.", "the disk is full."],
])("shows the error of an undo without the advice for clients of the API", (message, end) => {
  const text = errorText(new ClientError(message, { code: "session.undo" }))
  expect(text).toMatch(/^Cannot undo the turn:/)
  expect(text.endsWith(end)).toBe(true)
})

test("counts the files that prevent an undo", () => {
  const error = (details?: unknown) => new ClientError("Cannot undo.", { code: "session.undo", details })
  expect(refusedFiles(error({ files: [{ path: "/w/a", why: "changed" }] }))).toBe(1)
  expect(refusedFiles(error())).toBe(0)
})
