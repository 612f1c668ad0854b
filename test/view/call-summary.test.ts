import { expect, test } from "vitest"
import type { ToolPart } from "../../src/schema/part.ts"
import { progressBar, summarizeCall } from "../../src/view/call-summary.ts"

const running = (metadata: Record<string, unknown>, title?: string): ToolPart => ({
  ...{ id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "tool", callID: "c", tool: "deploy" },
  state: { status: "running", input: { target: "test" }, title, metadata, time: { start: 1 } },
})

test.each<[progress: unknown, text: string[], fraction: number | undefined]>([
  [50, ["50%"], 0.5],
  [0, ["0%"], 0],
  [12.6, ["13%"], 0.126],
  [250, ["100%"], 1],
  [-1, ["0%"], 0],
  [{ done: 3, total: 10 }, ["3/10"], 0.3],
  [{ done: 12, total: 10 }, ["12/10"], 1],
  [{ done: 3 }, ["3"], undefined],
  [{ done: 3, total: 0 }, ["3"], undefined],
  [Number.NaN, [], undefined],
  ["50", [], undefined],
  [null, [], undefined],
])("summarizes the progress %j", (progress, details, fraction) => {
  expect(summarizeCall(running({ progress }), "/w")).toMatchObject({ details, outcome: "running" })
  expect(summarizeCall(running({ progress }), "/w").fraction).toBe(fraction)
})

test("shows a running call's title unless it repeats the tool or an argument", () => {
  expect(summarizeCall(running({ progress: 50 }, "uploading"), "/w").details).toEqual(["uploading", "50%"])
  for (const title of ["deploy", "test", ""])
    expect(summarizeCall(running({}, title), "/w").details).toEqual([])
})

test.each([
  [0, "░░░░░░░░░░"],
  [0.5, "█████░░░░░"],
  [0.99, "█████████░"],
  [1, "██████████"],
])("draws the share %d as a bar", (fraction, bar) => {
  expect(progressBar(fraction)).toBe(bar)
})
