import { expect, test, vi } from "vitest"
import { createCallsUnderWay, type McpCall, silenceMs } from "../../../src/mcp/client/calls-under-way.ts"
import { createPatience } from "../../../src/mcp/client/patience.ts"
import { TimeoutError } from "../../../src/util/abort.ts"

function callOf(sessionID: string): McpCall {
  const answers: McpCall["answers"] = {
    elicit: async () => ({ action: "accept", content: { sessionID } }),
    sample: () => Promise.reject(new Error("not asked")),
  }
  return { name: "tool", args: {}, sessionID, signal: new AbortController().signal, onProgress() {}, answers }
}

const form = { message: "?", requestedSchema: { type: "object" as const, properties: {} } }
const never = new AbortController().signal

test("a request is answered by the session whose calls are under way, and by nobody where there are two", async () => {
  const calls = createCallsUnderWay("s")
  const ask = () => calls.answering()?.elicit(form, never)
  expect(ask()).toBeUndefined()
  await calls.run(callOf("one"), async () => {
    expect(await ask()).toMatchObject({ content: { sessionID: "one" } })
    await calls.run(callOf("one"), async () => {
      expect(await ask()).toMatchObject({ content: { sessionID: "one" } })
    })
    await calls.run(callOf("two"), async () => expect(ask()).toBeUndefined())
    expect(await ask()).toMatchObject({ content: { sessionID: "one" } })
  })
  expect(ask()).toBeUndefined()
})

test("a call is given up after a silence, not while a person thinks about an answer", async () => {
  vi.useFakeTimers()
  try {
    const patience = createPatience(never, silenceMs, "silent for too long")
    vi.advanceTimersByTime(silenceMs - 1)
    patience.heard()
    vi.advanceTimersByTime(silenceMs - 1)
    await patience.pause(async () => vi.advanceTimersByTime(silenceMs * 5))
    vi.advanceTimersByTime(silenceMs - 1)
    expect(patience.signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(patience.signal.reason).toBeInstanceOf(TimeoutError)
  } finally {
    vi.useRealTimers()
  }
})

test("nobody waits for a call that ended", async () => {
  vi.useFakeTimers()
  try {
    const calls = createCallsUnderWay("s")
    await calls.run(callOf("one"), async () => {})
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
