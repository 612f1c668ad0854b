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

test("what a subscriber publishes reaches every subscriber after the event that it answers", () => {
  const heard: string[] = []
  const bus = createBus(() => {})
  bus.on("part.removed", ({ partID }) => {
    if (partID === "asked") bus.publish(event("replied"))
  })
  bus.on("part.removed", ({ partID }) => heard.push(partID))
  bus.publish(event("asked"))
  expect(heard).toEqual(["asked", "replied"])
})

test("a subscriber that throws is reported and keeps nobody from the event, nor from later ones", () => {
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

test("subscribers are called in the async context in which the bus was made, whoever publishes", () => {
  const context = new AsyncLocalStorage<string>()
  const heard: (string | undefined)[] = []
  const bus = createBus(() => {})
  bus.subscribe(() => heard.push(context.getStore()))
  context.run("a call", () => bus.publish(event("p")))
  expect(heard).toEqual([undefined])
})
