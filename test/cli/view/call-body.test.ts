import { stripVTControlCharacters } from "node:util"
import { expect, test } from "vitest"
import { callBody, progressLines } from "../../../src/cli/view/call.ts"
import type { ToolPart } from "../../../src/schema/part.ts"
import type { ToolState } from "../../../src/schema/tool-state.ts"

const part = (state: ToolState, tool = "bash"): ToolPart => ({
  ...{ id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "1" },
  ...{ type: "tool", tool, state },
})
const ended = (metadata: Record<string, unknown>): ToolPart =>
  part({ status: "completed", input: {}, output: "", title: "", metadata, time: { start: 0, end: 1 } })
const running = (state: { title?: string; metadata?: Record<string, unknown> }): ToolPart =>
  part({ status: "running", input: { command: "make", description: "Build" }, ...state, time: { start: 0 } })
const bodyOf = (each: ToolPart, width = 80) => callBody(each, width).map(stripVTControlCharacters)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => `n${index + 1}`)

test("shows the last 8 lines of a command that succeeded, and the last 30 of one that failed", () => {
  const output = `${numbers(40).join("\n")}\n`
  expect(bodyOf(ended({ output, exit: 0 }))).toEqual([
    "  … 32 earlier lines",
    ...numbers(40)
      .slice(-8)
      .map((line) => `  ${line}`),
  ])
  expect(bodyOf(ended({ output: numbers(9).join("\n"), exit: 0 }))[0]).toBe("  … 1 earlier line")
  expect(bodyOf(ended({ output, exit: 1 }))).toHaveLength(31)
  expect(bodyOf(ended({ output, exit: null, timedOut: true }))).toHaveLength(31)
  expect(bodyOf(ended({ output: "", exit: 0 }))).toEqual([])
  const time = { start: 0, end: 1 }
  const error = part({ status: "error", input: {}, error: "aborted", metadata: { output: "late\n" }, time })
  expect(bodyOf(error)).toEqual(["  late"])
})

test("shows output as a terminal would finally show it, within the width", () => {
  const output = "10 %\r50 %\r100 %\r\n\u001b[31mred\u001b[0m\tend\n\u0007 a very long line\n"
  expect(bodyOf(ended({ output, exit: 0 }), 14)).toEqual(["  100 %", "  red    end", "  <U+0007> a …"])
})

test("shows the diff of an edit, and how much of a long diff is left", () => {
  expect(bodyOf(ended({ diff: "@@ -1 +1 @@\n-a\n+b\n" }))).toEqual(["  @@ -1 +1 @@", "  -a", "  +b"])
  const long = bodyOf(
    ended({
      diff: numbers(100)
        .map((line) => `+${line}`)
        .join("\n"),
    }),
  )
  expect(long).toHaveLength(61)
  expect(long.at(-1)).toBe("  … 40 more lines")
})

test("shows the title, progress and last output of a running call, but not what its input says", () => {
  expect(progressLines(running({ title: "Build" }), { rows: 5 })).toEqual([])
  expect(
    progressLines(running({ title: "linking", metadata: { output: "a\nb\nc\n" } }), { rows: 2 }),
  ).toEqual(["linking", "b", "c"])
  const progress = { done: 3, total: 9 }
  expect(progressLines(running({ metadata: { progress } }), { rows: 1 })).toEqual(["3/9 ███░░░░░░░"])
  expect(progressLines(running({ metadata: { progress: { done: 4 } } }), { rows: 1 })).toEqual(["4"])
})
