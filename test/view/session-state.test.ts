import { expect, test } from "vitest"
import type { TackleEvent } from "../../src/event/events.ts"
import type { Input } from "../../src/schema/input.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { applyEvent, createSessionState, prependMessages, usageOf } from "../../src/view/session-state.ts"
import { startEngine } from "../session/engine.ts"
import { tool } from "../session/run.ts"
import { aSession } from "../suites/records.ts"

const note = tool("note", () => ({ title: "", output: "noted" }))

/** Runs one prompt with a call. Returns its events, and the messages in the store. */
async function recordRun() {
  await using engine = await startEngine(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user"
        ? { text: "I will note it.", calls: [{ name: "note", arguments: {} }] }
        : { text: "All is noted now." },
    { tools: [note], permission: { "*": "allow" } },
  )
  const events: TackleEvent[] = []
  engine.tackle.subscribe((event) => events.push(structuredClone(event)))
  const session = await engine.tackle.sessions.create()
  const start = createSessionState({ session: structuredClone(session.info()) })
  await session.prompt("go").completed
  return { start, events, session: session.info(), messages: await session.messages() }
}

test("has the messages of the store after the events of a run", async () => {
  const { start, events, session, messages } = await recordRun()
  const state = events.reduce(applyEvent, start)
  expect(state.messages).toEqual(messages)
  expect(state.session).toEqual(session)
  expect(state).toMatchObject({ isRunning: false, lastRun: { status: "completed" } })
  expect(usageOf(state).contextTokens).toBeGreaterThan(0)
})

test("is the same if stored changes are applied twice", async () => {
  const { start, events } = await recordRun()
  const twice = events.flatMap((event) => (event.seq === undefined ? [event] : [event, event]))
  expect(twice.reduce(applyEvent, start).messages).toEqual(events.reduce(applyEvent, start).messages)
})

test("is running from the first message to the end of the run", async () => {
  const { start, events } = await recordRun()
  let state = start
  const running = events.map((event) => {
    state = applyEvent(state, event)
    return state.isRunning
  })
  const first = events.findIndex(({ type }) => type === "message.created")
  const last = events.findIndex(({ type }) => type === "run.completed")
  expect(running.slice(0, first).some(Boolean)).toBe(false)
  expect(running.slice(first, last).every(Boolean)).toBe(true)
  expect(running.slice(last).some(Boolean)).toBe(false)
})

test("keeps the objects of messages that an event does not change", async () => {
  const { start, events } = await recordRun()
  const state = events.reduce(applyEvent, start)
  const last = state.messages.at(-1)
  const next = applyEvent(state, {
    ...{ type: "part.delta", time: 0, sessionID: state.session.id },
    ...{ partID: last?.parts.findLast(({ type }) => type === "text")?.id ?? "", field: "text", delta: "!" },
  })
  expect(next.messages.at(-1)).not.toBe(last)
  expect(next.messages.slice(0, -1).every((message, index) => message === state.messages[index])).toBe(true)
  expect(
    applyEvent(state, { type: "part.removed", time: 0, sessionID: "ses_other", messageID: "", partID: "" }),
  ).toBe(state)
})

const base = { time: 0, sessionID: "ses_1" }
const empty = createSessionState({ session: { ...aSession("ses_1") } })

test("shows a request of a subagent's subagent until it is answered", () => {
  const request = (sessionID: string, parent: string): PermissionRequest => ({
    id: `per_${sessionID}`,
    sessionID,
    ...{ permission: "bash", patterns: [], always: [], rules: [], metadata: {} },
    tool: {
      ...{ messageID: "m", callID: "c" },
      parent: { sessionID: parent, messageID: "m", callID: "c", agent: "general" },
    },
  })
  const asked = [request("ses_2", "ses_1"), request("ses_3", "ses_2"), request("ses_9", "ses_8")].map(
    (each) => ({ type: "permission.asked" as const, time: 0, sessionID: each.sessionID, request: each }),
  )
  const state = asked.reduce(applyEvent, empty)
  expect(state.requests.map(({ id }) => id)).toEqual(["per_ses_2", "per_ses_3"])
  const answered = applyEvent(state, {
    ...{ type: "permission.replied", time: 0, sessionID: "ses_3", requestID: "per_ses_3" },
    ...{ reply: "once", source: "user" },
  })
  expect(answered.requests.map(({ id }) => id)).toEqual(["per_ses_2"])
})

test("lists pending inputs in the order of their delivery", () => {
  const input = (id: string, delivery: Input["delivery"], position: number): Input => ({
    ...{ id, sessionID: "ses_1", seq: position, delivery, state: "pending", position },
    ...{ text: id, digest: "", time: { created: 0 } },
  })
  const inputs = [
    input("a", "queue", 1),
    input("b", "steer", 3),
    input("c", "now", 4),
    input("d", "queue", 0),
  ]
  const state = inputs.reduce(
    (before, each) => applyEvent(before, { type: "input.updated", ...base, input: each }),
    empty,
  )
  expect(state.inputs.map(({ id }) => id)).toEqual(["c", "b", "d", "a"])
  const done = applyEvent(state, {
    ...{ type: "input.updated", ...base },
    input: { ...input("b", "steer", 3), state: "promoted" },
  })
  expect(done.inputs.map(({ id }) => id)).toEqual(["c", "d", "a"])
})

test("adds older messages once", async () => {
  const { start, messages } = await recordRun()
  const state = { ...start, messages: messages.slice(-1) }
  expect(prependMessages(state, messages.slice(0, -1)).messages).toEqual(messages)
  expect(prependMessages({ ...start, messages }, messages)).toMatchObject({ messages })
})
