import { expect, test } from "vitest"
import { ClientError } from "../../src/client/errors.ts"
import { UndoRefusedError } from "../../src/files/put-back.ts"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import { lastTurn, withAdvice } from "../../src/tui/rewind.ts"
import { aMessage, aPart } from "../suites/records.ts"

const image = { mime: "image/png", url: "data:image/png;base64,AA==", filename: "a.png" }

function prompt(id: string, text: string, ...more: object[]): MessageWithParts {
  const parts = [
    aPart(`prt_${id}`, id, "ses_1", text),
    ...more.map((part) => ({ ...part, id: "prt_x" }) as Part),
  ]
  return { message: aMessage(id, "ses_1"), parts }
}

function answer(id: string, finish: "stop" | "tool-calls", error?: object): MessageWithParts {
  const message = { id, sessionID: "ses_1", role: "assistant", finish, error }
  return { message: message as MessageWithParts["message"], parts: [] }
}

const changes = { type: "patch", files: [{ path: "/w/a" }, { path: "/w/b" }] }

test("the last turn begins with its first prompt and contains the prompts that steered it", () => {
  const messages = [
    prompt("msg_1", "one"),
    answer("msg_2", "stop"),
    prompt("msg_3", "two", changes),
    answer("msg_4", "tool-calls"),
    prompt("msg_5", "and three"),
    answer("msg_6", "stop"),
  ]
  const { messageID, text, changedTurns, files } = lastTurn(messages) ?? {}
  expect({ messageID, text, changedTurns, files }).toEqual({
    ...{ messageID: "msg_3", text: "two\n\nand three", changedTurns: 1, files: ["/w/a", "/w/b"] },
  })
})

test("a prompt after an interrupted step begins a turn", () => {
  const aborted = { name: "aborted", message: "stopped" }
  const messages = [prompt("msg_1", "one"), answer("msg_2", "tool-calls", aborted), prompt("msg_3", "two")]
  expect(lastTurn(messages)).toMatchObject({ messageID: "msg_3", text: "two", changedTurns: 0 })
})

test("a prompt returns with the images that its text marks", () => {
  const file = { ...image, type: "file" }
  expect(lastTurn([prompt("msg_1", "see [image 1]", file, file)])?.images).toEqual([image])
  expect(lastTurn([prompt("msg_1", "see @a.png", file)])?.images).toEqual([])
  expect(lastTurn([])).toBeUndefined()
})

const refused = [{ path: "/w/a", why: "changed" as const }]

function advised(error: Error): Promise<string> {
  return withAdvice("undo", { id: "ses_1" }, () => Promise.reject(error)).catch(({ message }) => message)
}

test("a refused undo names the files and commands, and no flags of another interface", async () => {
  const message = await advised(new UndoRefusedError("undo", refused, { total: 2 }))
  expect(message).toContain("/w/a: it has been changed in the meantime")
  expect(message).toContain("`tackle session undo ses_1 --others`")
  expect(message).not.toContain("use --others")
  const other = new Error("one line")
  await expect(withAdvice("redo", { id: "ses_1" }, () => Promise.reject(other))).rejects.toBe(other)
})

test.each([
  ["of several turns", new UndoRefusedError("undo", refused, { total: 2, turns: 3 }), "undo fewer turns."],
  [
    "on a server",
    new ClientError('Cannot undo:\n  /w/a: it has been changed in the meantime\nSend {"others": true}.', {
      code: "session.undo",
    }),
    "in the meantime\nCheck these files first.",
  ],
])("a refused undo %s names the files, and no command", async (_, error, end) => {
  const message = await advised(error)
  expect(message).toContain("/w/a: it has been changed in the meantime")
  expect(message.endsWith(end)).toBe(true)
  expect(message).not.toContain("tackle session")
})
