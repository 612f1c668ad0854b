import { describe, expect, test } from "vitest"
import { detectLoop, type LoopCall } from "../../src/call/doom-loop.ts"

/** Parses calls: a letter is the input, a digit after it the result of a polling call. */
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
    ["the third identical call", "a a", "a", { kind: "repeat", count: 3, period: 1 }],
    ["the fourth", "a a a", "a", { kind: "repeat", count: 4, period: 1 }],
    ["the third call that polls with equal results", "a1 a1", "a", { kind: "repeat", count: 3, period: 1 }],
    ["a polling call whose result is unknown", "a1 a", "a", { kind: "repeat", count: 3, period: 1 }],
    ["after other calls", "x y a a", "a", { kind: "repeat", count: 3, period: 1 }],
    ["a cycle of two", "a b a b a", "b", { kind: "cycle", count: 3, period: 2 }],
    ["a cycle of three", "a b c a b c a b", "c", { kind: "cycle", count: 3, period: 3 }],
    ["a cycle of four", "a b c d a b c d a b c", "d", { kind: "cycle", count: 3, period: 4 }],
    ["a cycle with a polling call", "a b1 a b1 a", "b", { kind: "cycle", count: 3, period: 2 }],
    ["results that stopped changing", "a1 a2 a2", "a", { kind: "repeat", count: 3, period: 1 }],
  ])("detects %s", (_, history, next, loop) => {
    expect(detectLoop(calls(history), { tool: "read", input: next })).toEqual(loop)
  })

  test.each([
    ["nothing before", "", "a"],
    ["the second call", "a", "a"],
    ["not in a row", "a b a c", "a"],
    ["polling with changing results", "a1 a2", "a"],
    ["polling with changing results for long", "a1 a2 a3 a4 a5 a6 a7 a8 a9 a8 a7", "a"],
    ["polling with alternating results", "a1 a2 a1 a2 a1 a2", "a"],
    ["a cycle before its third round ends", "a b a b", "a"],
    ["a cycle with a polling call whose results change", "a b1 a b2 a", "b"],
    ["a cycle of five", "a b c d e a b c d e a b c d", "e"],
  ])("ignores %s", (_, history, next) => {
    expect(detectLoop(calls(history), { tool: "read", input: next })).toBeUndefined()
  })

  test("distinguishes calls of different tools", () => {
    expect(detectLoop(calls("a a"), { tool: "list", input: "a" })).toBeUndefined()
  })
})
