import { expect, test, vi } from "vitest"
import {
  createIdleTimeout,
  createPendingCalls,
  idleTimeoutMs,
  type McpCall,
} from "../../../src/mcp/client/pending-calls.ts"
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

test("answers a server request only while the running calls are of one session", async () => {
  const calls = createPendingCalls("s")
  const ask = () => calls.answers()?.elicit(form, never)
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

test("fires the idle timeout, which pauses while the user answers", async () => {
  vi.useFakeTimers()
  try {
    const timeout = createIdleTimeout(never, { ms: idleTimeoutMs, message: "no progress" })
    vi.advanceTimersByTime(idleTimeoutMs - 1)
    timeout.restart()
    vi.advanceTimersByTime(idleTimeoutMs - 1)
    await timeout.pause(async () => vi.advanceTimersByTime(idleTimeoutMs * 5))
    vi.advanceTimersByTime(idleTimeoutMs - 1)
    expect(timeout.signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(timeout.signal.reason).toBeInstanceOf(TimeoutError)
  } finally {
    vi.useRealTimers()
  }
})

test("fires the total timeout despite progress, excluding the time spent waiting for the user", async () => {
  vi.useFakeTimers()
  try {
    const total = { ms: 1000, message: "too long" }
    const timeout = createIdleTimeout(never, { ms: 100, message: "no progress", total })
    const advance = (count: number) => {
      for (let at = 0; at < count; at += 1) {
        vi.advanceTimersByTime(90)
        timeout.restart()
      }
    }
    advance(6)
    await timeout.pause(() => timeout.pause(async () => vi.advanceTimersByTime(5000)))
    advance(5)
    expect(timeout.signal.aborted).toBe(false)
    advance(1)
    expect(timeout.signal.reason).toMatchObject({ message: "too long" })
    timeout.end()
  } finally {
    vi.useRealTimers()
  }
})

test("leaves no timer after a call", async () => {
  vi.useFakeTimers()
  try {
    const calls = createPendingCalls("s")
    await calls.run(callOf("one"), async () => {})
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
