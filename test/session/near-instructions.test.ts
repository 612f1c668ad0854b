import { expect, test } from "vitest"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { ToolStateCompleted } from "../../src/schema/tool-state.ts"
import { createNearInstructions } from "../../src/session/conversation.ts"

const text = { path: "/p/sub/AGENTS.md", text: "Say please." }
const find = async () => [text]

/** A history in which a call received the text. */
function historyOf(more: Partial<ToolStateCompleted> = {}): MessageWithParts[] {
  const ids = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1" }
  const state: ToolStateCompleted = {
    status: "completed",
    input: {},
    output: "…",
    title: "",
    metadata: { instructions: [text.path] },
    time: { start: 0, end: 1 },
    ...more,
  }
  const message = {
    id: "msg_1",
    sessionID: "ses_1",
    role: "user" as const,
    time: { created: 0 },
    agent: "build",
    model: { providerID: "p", modelID: "m" },
  }
  return [{ message, parts: [{ ...ids, type: "tool", callID: "call_1", tool: "read", state }] }]
}

test("gives a text once, even across engines", async () => {
  const fresh = createNearInstructions(find, [])
  expect(await fresh.near("/p/sub/a.txt")).toEqual([text])
  expect(await fresh.near("/p/sub/b.txt")).toEqual([])
  expect(await createNearInstructions(find, historyOf()).near("/p/sub/a.txt")).toEqual([])
})

test("gives a text again after its output was pruned", async () => {
  const pruned = createNearInstructions(find, historyOf({ pruned: "/data/spill/prt_1" }))
  expect(await pruned.near("/p/sub/a.txt")).toEqual([text])
})
