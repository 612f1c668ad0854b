import { stripVTControlCharacters } from "node:util"
import { describe, expect, test } from "vitest"
import type { Message, MessageWithParts } from "../../src/schema/message.ts"
import type { Part, ToolPart } from "../../src/schema/part.ts"
import { type Conversation, createConversation } from "../../src/tui/conversation.ts"
import { renderCall } from "../../src/tui/tool-card.ts"
import { createSessionState, type SessionState } from "../../src/view/session-state.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { theme } from "./components.ts"

const answer: Message = {
  ...{ id: "msg_9999", sessionID: "ses_1", role: "assistant", parentID: "msg_0", agent: "build", cost: 0 },
  ...{ model: { providerID: "p", modelID: "m" }, time: { created: 1 }, path: { cwd: "/w", root: "/w" } },
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
}

/** Returns prompts, each of which takes two lines. */
function prompts(count: number): MessageWithParts[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `msg_${String(index).padStart(4, "0")}`
    return { message: aMessage(id, "ses_1"), parts: [aPart(`prt_${index}`, id, "ses_1", `prompt ${index}`)] }
  })
}

function stateOf(messages: readonly MessageWithParts[]): SessionState {
  return createSessionState({ session: aSession("ses_1"), messages })
}

/** Returns the answer with a call for each output. */
function withCalls(
  outputs: readonly string[],
  status: "running" | "completed" = "running",
): MessageWithParts {
  const parts = outputs.map((output, index): Part => {
    const base = { id: `prt_${index}`, sessionID: "ses_1", messageID: answer.id, callID: `call_${index}` }
    const input = { command: `command ${index}` }
    const shared = { input, metadata: { output, exit: 0 } }
    return {
      ...{ ...base, type: "tool", tool: "bash" },
      state:
        status === "running"
          ? { ...shared, status, time: { start: 1 } }
          : { ...shared, status, output, title: "", time: { start: 1, end: 2 } },
    }
  })
  return { message: answer, parts }
}

/** A terminal of 100 columns and 30 rows that shows only the conversation. */
function open() {
  const view = { rows: 30, above: 0 }
  const conversation: Conversation = createConversation(theme, {
    ...{ rows: () => view.rows, linesAbove: () => view.above, olderKey: "pgup", expandKey: "" },
  })
  let lines: string[] = []
  return {
    conversation,
    view,
    draw(width = 100) {
      lines = conversation.render(width).map((line) => stripVTControlCharacters(line).trimEnd())
      view.above = Math.max(0, lines.length - view.rows)
      return lines
    },
  }
}

describe("a long session", () => {
  test("begins with its last screens and the key for earlier messages", () => {
    const { conversation, draw } = open()
    conversation.setState(stateOf(prompts(400)))
    const lines = draw()
    expect(lines[0]).toBe("── earlier messages: pgup ──")
    expect(lines.at(-2)).toBe("› prompt 399")
    expect(lines.length).toBeLessThan(310)
  })

  test("shows earlier messages until the beginning", () => {
    const { conversation, draw } = open()
    conversation.setState(stateOf(prompts(400)))
    const before = draw().length
    expect(conversation.showOlder()).toBe(true)
    expect(draw().length).toBeGreaterThan(before + 490)
    expect(conversation.showOlder()).toBe(false)
    expect(draw()[0]).toBe("› prompt 0")
  })

  test("says that earlier messages exist if they are not loaded", () => {
    const { conversation, draw } = open()
    conversation.setState(stateOf(prompts(3)), { hasOlder: true })
    expect(draw()[0]).toBe("── earlier messages: pgup ──")
    expect(conversation.showOlder()).toBe(false)
    conversation.setState(stateOf(prompts(3)))
    expect(draw()[0]).toBe("› prompt 0")
  })

  test("draws only the last lines of a growing conversation, and more lines after a resize", () => {
    const { conversation, view, draw } = open()
    let forgotten = 0
    for (let count = 1; count <= 1_000; count += 9) {
      conversation.setState(stateOf(prompts(count)))
      const lines = draw()
      expect(lines.length).toBeLessThan(1_100)
      const spare = conversation.spareLines()
      expect(spare).toBeLessThan(Math.max(1, view.above))
      conversation.forgetSpareLines({ areKept: true })
      forgotten += spare
      view.above -= spare
      // Nothing else changes, so the terminal needs to draw only the new lines.
      if (spare > 0) expect(draw()).toEqual(lines.slice(spare))
    }
    expect(forgotten).toBeGreaterThan(400)
    expect(forgotten + draw().length).toBe(2_000)
    const wide = draw(120)
    expect(wide[0]).toBe("── earlier messages: pgup ──")
    expect(wide.length).toBeGreaterThan(990)
  })
})

describe("lines above the screen", () => {
  const output = (text: string, lines: number) => Array.from({ length: lines }, () => text).join("\n")

  test("do not change while a run changes them, and are drawn correctly on request", () => {
    const { conversation, draw } = open()
    const outputs = Array.from({ length: 10 }, (_, index) => output(`out ${index}`, 3))
    conversation.setState(stateOf([withCalls(outputs)]))
    const before = draw()
    conversation.setState(
      stateOf([withCalls(outputs.with(0, output("changed", 5)).with(9, "last\nlast\nlast"))]),
    )
    const after = draw()
    expect(after.slice(0, 20)).toEqual(before.slice(0, 20))
    expect(after.join("\n")).toContain("last")
    expect(conversation.isStale).toBe(true)
    conversation.redraw()
    expect(draw().join("\n")).toContain("changed")
    expect(conversation.isStale).toBe(false)
  })

  test("keep the beginning of an item that is partly visible", () => {
    const { conversation, draw, view } = open()
    conversation.setState(stateOf([withCalls([output("a", 3), output("b", 3), output("c", 3)])]))
    const before = draw()
    view.above = 7
    conversation.setState(stateOf([withCalls([output("a", 3), output("B", 3), output("c", 3)])]))
    const after = draw()
    expect(after.slice(0, 7)).toEqual(before.slice(0, 7))
    expect(after.slice(7)).toEqual(["  B", "  B", "", ...before.slice(-5)])
  })

  test("change when messages disappear", () => {
    const { conversation, draw } = open()
    conversation.setState(stateOf(prompts(50)))
    draw()
    conversation.setState(stateOf(prompts(50).slice(3)))
    expect(draw()[0]).toBe("› prompt 3")
    expect(conversation.isStale).toBe(false)
  })
})

test("shows the title, the progress and a bar of a running call", () => {
  const ids = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "call_1" }
  const metadata = { progress: { done: 3, total: 10 } }
  const state = { status: "running", title: "uploading", input: {}, metadata, time: { start: 1 } } as const
  const part: ToolPart = { ...ids, type: "tool", tool: "deploy", state }
  const options = { theme, worktree: "/w", subagents: new Map(), expandKey: "F8", expanded: false }
  const [line = ""] = renderCall(part, 80, options)
  expect(stripVTControlCharacters(line)).toMatch(/^● deploy +· uploading · 3\/10 ███░░░░░░░$/)
})

describe("a shortened item", () => {
  const options = { theme, worktree: "/w", subagents: new Map(), expandKey: "F8" }
  const input = { command: "go" }
  const time = { start: 1, end: 2 }
  const lines = Array.from({ length: 5_000 }, (_, line) => `+line ${line}`).join("\n")
  const diff = `--- a\n+++ a\n@@ -0,0 +1,5000 @@\n${lines}`
  const states: Record<string, ToolPart["state"]> = {
    output: { status: "completed", input, time, title: "", output: lines, metadata: { output: lines } },
    diff: { status: "completed", input, time, title: "", output: "", metadata: { diff } },
    error: { status: "error", input, time, error: lines },
  }

  test.each(Object.keys(states))("names the key that shows all of its %s, until it is pressed", (kind) => {
    const state = states[kind] as ToolPart["state"]
    const ids = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "call_1" }
    const part: ToolPart = { ...ids, type: "tool", tool: "bash", state }
    expect(renderCall(part, 80, { ...options, expanded: false }).join("\n")).toContain("… ")
    expect(renderCall(part, 80, { ...options, expanded: false }).join("\n")).toContain("(F8 shows all)")
    expect(renderCall(part, 80, { ...options, expanded: true }).join("\n")).not.toContain("shows all")
    const withoutKey = renderCall(part, 80, { ...options, expandKey: "", expanded: false }).join("\n")
    expect(withoutKey).toContain("…")
    expect(withoutKey).not.toContain("shows all")
  })

  test("names the key that shows all of a prompt", () => {
    const conversation = createConversation(theme, {
      ...{ rows: () => 100, linesAbove: () => 0, olderKey: "", expandKey: "F8" },
    })
    const prompt = { message: aMessage("msg_1", "ses_1"), parts: [aPart("prt_1", "msg_1", "ses_1", lines)] }
    conversation.setState(stateOf([prompt]))
    expect(conversation.render(80).join("\n")).toContain("(F8 shows all)")
  })
})
