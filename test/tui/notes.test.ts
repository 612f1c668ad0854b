import { stripVTControlCharacters } from "node:util"
import { expect, test } from "vitest"
import type { ToolPart } from "../../src/schema/part.ts"
import { createConversation } from "../../src/tui/conversation.ts"
import { createSessionState } from "../../src/view/session-state.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { theme } from "./components.ts"

function call(output: string): ToolPart {
  const ids = { id: "shell_1", callID: "shell_1", sessionID: "", messageID: "" }
  const state = { status: "running", input: { command: "ls" }, metadata: { output }, time: { start: 1 } }
  return { ...ids, type: "tool", tool: "$", state } as ToolPart
}

function messages(...ids: string[]) {
  const found = ids.map((id) => ({
    message: aMessage(id, "ses_1"),
    parts: [aPart(`prt_${id}`, id, "ses_1", id)],
  }))
  return createSessionState({ session: aSession("ses_1"), messages: found })
}

function shown(conversation: ReturnType<typeof createConversation>): string[] {
  return conversation
    .render(40)
    .map((line) => stripVTControlCharacters(line))
    .filter((line) => line !== "")
}

test("shows a note after the message that was the last when it was added, and changes it there", () => {
  const conversation = createConversation(theme)
  conversation.notes.addText("before", undefined)
  conversation.notes.setCall(call("one"), "msg_1")
  conversation.setState(messages("msg_1", "msg_2"))
  expect(shown(conversation)).toEqual(["! before", "› msg_1", "● $ ls", "  one", "› msg_2"])
  conversation.notes.setCall(call("two"), "msg_2")
  expect(shown(conversation)).toEqual(["! before", "› msg_1", "● $ ls", "  two", "› msg_2"])
})

test("joins texts that follow each other, shows the last lines, and shows all if it is expanded", () => {
  const conversation = createConversation(theme, {
    ...{ rows: () => Number.POSITIVE_INFINITY, linesAbove: () => 0, olderKey: "", expandKey: "F8" },
  })
  for (let line = 1; line <= 30; line++) conversation.notes.addText(`line ${line}\u001b[2J`, undefined)
  expect(shown(conversation)).toHaveLength(11)
  expect(shown(conversation)).toEqual(
    expect.arrayContaining(["! … 20 earlier lines (F8 shows all)", "  line 21", "  line 30"]),
  )
  conversation.expanded = true
  expect(shown(conversation)).toEqual(expect.arrayContaining(["! line 1", "  line 30"]))
})
