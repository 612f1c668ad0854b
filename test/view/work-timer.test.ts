import { expect, test } from "vitest"
import type { SessionState } from "../../src/view/session-state.ts"
import { createWorkTimer } from "../../src/view/work-timer.ts"

const request = {} as SessionState["requests"][number]
const question = {} as SessionState["questions"][number]

test("counts the time of a run without the time that it waits for the user", () => {
  let now = 1_000
  const timer = createWorkTimer(() => now)
  const pass = (ms: number, state: Partial<Pick<SessionState, "isRunning" | "requests" | "questions">>) => {
    timer.update({ isRunning: true, requests: [], questions: [], ...state })
    now += ms
    return timer.elapsed()
  }
  expect(pass(50, { isRunning: false })).toBe(0)
  expect(pass(100, {})).toBe(100)
  expect(pass(200, {})).toBe(300)
  expect(pass(5_000, { requests: [request] })).toBe(300)
  expect(pass(5_000, { requests: [request], questions: [question] })).toBe(300)
  expect(pass(5_000, { questions: [question] })).toBe(300)
  expect(pass(10, {})).toBe(310)
  expect(pass(1_000, { isRunning: false })).toBe(310)
  expect(pass(7, {})).toBe(7)
})
