import { describe, expect, test } from "vitest"
import { detectLoop, type LoopCall } from "../../src/permission/doom-loop.ts"

/** Parses calls: a letter is the input, a digit after it the result. */
function calls(text: string): LoopCall[] {
  return text
    .split(" ")
    .filter(Boolean)
    .map((word) => {
      const call = { tool: "read", input: word[0] ?? "" }
      return word[1] === undefined ? call : { ...call, result: word[1] }
    })
}

describe("detectLoop", () => {
  test.each([
    ["the third identical call", "a1 a1", "a", { kind: "repeat", count: 3, period: 1 }],
    ["the fourth", "a1 a1 a1", "a", { kind: "repeat", count: 4, period: 1 }],
    ["results not known yet", "a a", "a", { kind: "repeat", count: 3, period: 1 }],
    ["after other calls", "x1 y1 a1 a1", "a", { kind: "repeat", count: 3, period: 1 }],
    ["a cycle of two", "a1 b2 a1 b2 a1", "b", { kind: "cycle", count: 3, period: 2 }],
    ["a cycle of three", "a1 b2 c3 a1 b2 c3 a1 b2", "c", { kind: "cycle", count: 3, period: 3 }],
    ["a cycle of four", "a1 b2 c3 d4 a1 b2 c3 d4 a1 b2 c3", "d", { kind: "cycle", count: 3, period: 4 }],
    [
      "the tenth with changing results",
      "a1 a2 a3 a4 a5 a6 a7 a8 a9",
      "a",
      { kind: "repeat", count: 10, period: 1 },
    ],
    ["results that stopped changing", "a1 a2 a2", "a", { kind: "repeat", count: 4, period: 1 }],
  ])("detects %s", (_, history, next, loop) => {
    expect(detectLoop(calls(history), { tool: "read", input: next })).toEqual(loop)
  })

  test.each([
    ["nothing before", "", "a"],
    ["the second call", "a1", "a"],
    ["not in a row", "a1 b1 a1 c1", "a"],
    ["changing results", "a1 a2", "a"],
    ["the ninth with changing results", "a1 a2 a3 a4 a5 a6 a7 a8", "a"],
    ["a cycle before its third round ends", "a1 b2 a1 b2", "a"],
    ["a cycle with changing results", "a1 b1 a1 b2 a1", "b"],
    ["a cycle of five", "a1 b1 c1 d1 e1 a1 b1 c1 d1 e1 a1 b1 c1 d1", "e"],
  ])("ignores %s", (_, history, next) => {
    expect(detectLoop(calls(history), { tool: "read", input: next })).toBeUndefined()
  })

  test("distinguishes calls of different tools", () => {
    expect(detectLoop(calls("a1 a1"), { tool: "list", input: "a" })).toBeUndefined()
  })
})
