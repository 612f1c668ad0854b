import { AsyncLocalStorage } from "node:async_hooks"
import { expect, test } from "vitest"
import { createBus } from "../../src/event/bus.ts"
import type { EventInput } from "../../src/event/events.ts"

const event = (partID: string): EventInput => ({
  type: "part.removed",
  sessionID: "s",
  messageID: "m",
  partID,
})

test("delivers an event that a subscriber publishes after the current event", () => {
  const heard: string[] = []
  const bus = createBus(() => {})
  bus.on("part.removed", ({ partID }) => {
    if (partID === "asked") bus.publish(event("replied"))
  })
  bus.on("part.removed", ({ partID }) => heard.push(partID))
  bus.publish(event("asked"))
  expect(heard).toEqual(["asked", "replied"])
})

test("reports an error of a subscriber and still delivers to the others", () => {
  const heard: string[] = []
  const errors: unknown[] = []
  const bus = createBus((error) => errors.push(error))
  bus.subscribe(() => {
    throw new Error("no")
  })
  bus.on("part.removed", ({ partID }) => heard.push(partID))
  bus.publish(event("one"))
  bus.publish(event("two"))
  expect(heard).toEqual(["one", "two"])
  expect(errors).toHaveLength(2)
})

test("calls subscribers in the async context in which the bus was created", () => {
  const context = new AsyncLocalStorage<string>()
  const heard: (string | undefined)[] = []
  const bus = createBus(() => {})
  bus.subscribe(() => heard.push(context.getStore()))
  context.run("a call", () => bus.publish(event("p")))
  expect(heard).toEqual([undefined])
})

test("delivers only the events of a session to a subscriber that follows it, until it leaves", () => {
  const heard: string[] = []
  const bus = createBus(() => {})
  bus.subscribe(({ sessionID }) => heard.push(`all ${sessionID}`))
  const leave = bus.follow("one", ({ sessionID }) => heard.push(`own ${sessionID}`))
  for (const sessionID of ["one", "two"]) bus.publish({ ...event("p"), sessionID })
  leave()
  bus.publish({ ...event("p"), sessionID: "one" })
  expect(heard).toEqual(["all one", "own one", "all two", "all one"])
})
