import { expect, test } from "vitest"
import { eventStream } from "../../src/server/event-stream.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { createChannel } from "../../src/util/channel.ts"

test("an event stream that fails closes the response, and releases the engine", async () => {
  const events = createChannel<SessionEvent>(() => {})
  let released = 0
  const onEnd = () => {
    released += 1
  }
  const reader = eventStream(events, { heartbeatMs: 60_000, idsOf: "ses_1", onEnd }).getReader()
  expect((await reader.read()).done).toBe(false)
  events.fail(new Error("The database does not answer."))
  await expect(reader.read()).rejects.toThrow("The database does not answer.")
  expect(released).toBe(1)
})
