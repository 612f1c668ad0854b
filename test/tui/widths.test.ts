import { visibleWidth } from "@earendil-works/pi-tui"
import fc from "fast-check"
import { expect, test } from "vitest"
import type { Message } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import { createConversation } from "../../src/tui/conversation.ts"
import { renderDiff } from "../../src/tui/diff-view.ts"
import { renderCall } from "../../src/tui/tool-card.ts"
import { createSessionState } from "../../src/view/session-state.ts"
import { runs } from "../runs.ts"
import { aMessage, aSession } from "../suites/records.ts"
import { theme } from "./components.ts"

/** Texts whose width in a terminal differs from their length, or that a terminal acts on. */
const odd = fc.constantFrom(
  ...["漢字かな", "👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "ｶﾞ", "กำ", "\u202e", "\u200b", "\t", "\n", "\r", "\r\n", "\b"],
  ...["\u001b[31m", "\u001b[2J", "\u001b]8;;http://x\u0007", "\u001b]0;t\u0007", "\u009b1m", "\u0000"],
  ...["word".repeat(60), "漢".repeat(90), "https://example.org/".repeat(9)],
  ...[
    "- item\n",
    "# head\n",
    "```ts\n",
    "```\n",
    "| a | b |\n|---|---|\n| c | d |\n",
    "> quote ",
    "**bold** ",
  ],
)
const text = fc
  .array(fc.oneof({ arbitrary: odd, weight: 2 }, fc.string({ unit: "grapheme", maxLength: 20 })), {
    maxLength: 12,
  })
  .map((pieces) => pieces.join(""))
const width = fc.integer({ min: 20, max: 120 })
const base = { id: "prt_1", sessionID: "ses_1", messageID: "msg_2" }
const time = { start: 1, end: 5_000 }

const toolPart = fc
  .record({
    tool: fc.constantFrom("bash", "edit", "read", "todowrite", "custom"),
    subject: text,
    output: text,
  })
  .chain(({ tool, subject, output }) => {
    const input = { command: subject, filePath: subject }
    const metadata = { output, exit: 1, diff: tool === "edit" ? diffOf(subject, output) : undefined }
    const todos = tool === "todowrite" ? [{ status: "pending", content: output }] : undefined
    return fc.constantFrom<Part & { type: "tool" }>(
      ...(
        [
          { status: "pending", input, raw: subject },
          { status: "running", input, metadata, time },
          { status: "completed", input, output, title: subject, metadata: { ...metadata, todos }, time },
          { status: "error", input, error: output, time },
        ] as const
      ).map((state) => ({ ...base, type: "tool" as const, tool, callID: "call_1", state })),
    )
  })

const part: fc.Arbitrary<Part> = fc.oneof(
  toolPart,
  text.map((each): Part => ({ ...base, type: "text", text: each })),
  text.map((each): Part => ({ ...base, type: "reasoning", text: each, time })),
  text.map(
    (error): Part => ({ ...base, type: "retry", attempt: 1, error, delayMs: 1, time: { created: 1 } }),
  ),
)

/** Returns a unified diff that replaces the lines of a text by those of another. */
function diffOf(before: string, after: string): string {
  const [removed, added] = [before, after].map((each) => each.split("\n"))
  const count = (lines: string[] = []) => lines.length
  const body = [...(removed ?? []).map((line) => `-${line}`), ...(added ?? []).map((line) => `+${line}`)]
  return `--- a\n+++ b\n@@ -1,${count(removed)} +1,${count(added)} @@\n${body.join("\n")}\n`
}

function expectFit(lines: readonly string[], columns: number): void {
  for (const line of lines) {
    expect(visibleWidth(line), JSON.stringify(line)).toBeLessThanOrEqual(columns)
    expect(line).not.toMatch(/[\r\n\b]/)
  }
}

test("no line of a conversation is wider than the screen", () => {
  const answer: Message = {
    ...{ id: "msg_2", sessionID: "ses_1", role: "assistant", parentID: "msg_1", agent: "build", cost: 0 },
    ...{ model: { providerID: "p", modelID: "m" }, time: { created: 1 }, path: { cwd: "/w", root: "/w" } },
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  }
  const property = fc.property(text, fc.array(part, { maxLength: 4 }), width, fc.boolean(), (...values) => {
    const [prompt, parts, columns, expanded] = values
    const conversation = createConversation(theme)
    conversation.expanded = expanded
    const user = {
      message: aMessage("msg_1", "ses_1"),
      parts: [{ ...base, type: "text" as const, text: prompt }],
    }
    const messages = [user, { message: answer, parts }]
    conversation.setState(createSessionState({ session: aSession("ses_1"), messages }))
    expectFit(conversation.render(columns), columns)
  })
  fc.assert(property, { numRuns: runs(150) })
})

test("no line of a call is wider than the screen", () => {
  const options = { theme, expandKey: "Ctrl+O", worktree: "/w", subagents: new Map() }
  fc.assert(
    fc.property(toolPart, width, fc.boolean(), (call, columns, expanded) =>
      expectFit(renderCall(call, columns, { ...options, expanded }), columns),
    ),
    { numRuns: runs(150) },
  )
})

test("no line of a diff is wider than the screen, even if it cannot be parsed", () => {
  const diff = fc.oneof(
    text,
    fc.tuple(text, text).map(([before, after]) => diffOf(before, after)),
  )
  fc.assert(
    fc.property(
      diff,
      width,
      fc.integer({ min: 1, max: 50 }),
      fc.boolean(),
      (each, columns, maxLines, wraps) =>
        expectFit(renderDiff(each, { width: columns, theme, maxLines, wraps }), columns),
    ),
    { numRuns: runs(150) },
  )
})

test("a wrapped diff shows the whole of each line", () => {
  const words = Array.from({ length: 30 }, (_, index) => `word${index}`)
  const text = diffOf("short", words.join(" "))
  const shown = renderDiff(text, { width: 40, theme, maxLines: 50, wraps: true }).join("\n")
  for (const word of words) expect(shown).toContain(word)
  expect(renderDiff(text, { width: 40, theme, maxLines: 50 }).join("\n")).not.toContain("word29")
})
