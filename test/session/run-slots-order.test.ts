import fc from "fast-check"
import { expect, test } from "vitest"
import { afterTurn, nextInTurn } from "../../src/session/run-slots.ts"

test("returns -1 if no item waits", () => {
  expect(nextInTurn([], ["a"])).toBe(-1)
})

test("takes turns between groups, whatever the number of their items", () => {
  const waiting = ["a", "a", "a", "b", "a", "c"]
  const order: string[] = []
  let served: string[] = []
  while (waiting.length > 0) {
    const [group = ""] = waiting.splice(nextInTurn(waiting, served), 1)
    order.push(group)
    served = afterTurn(served, group)
  }
  expect(order.join("")).toBe("abcaaa")
})

/** An item arrives, or the next waiting item starts. */
const step = fc.oneof(fc.constantFrom("a", "b", "c", "d"), fc.constant(undefined))

test("starts the oldest item of a group, and no group twice while another one waits", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const waiting: { group: string; number: number }[] = []
      /** Groups that have started since each group began to wait. */
      const passed = new Map<string, string[]>()
      const last = new Map<string, number>()
      let served: string[] = []
      let number = 0
      for (const group of steps) {
        if (group !== undefined) {
          if (!waiting.some((item) => item.group === group)) passed.set(group, [])
          number += 1
          waiting.push({ group, number })
          continue
        }
        const index = nextInTurn(
          waiting.map((item) => item.group),
          served,
        )
        expect(index < 0).toBe(waiting.length === 0)
        const [item] = waiting.splice(index < 0 ? waiting.length : index, 1)
        if (!item) continue
        served = afterTurn(served, item.group)
        expect(item.number).toBeGreaterThan(last.get(item.group) ?? 0)
        last.set(item.group, item.number)
        for (const other of new Set(waiting.map((each) => each.group))) {
          if (other === item.group) continue
          const before = passed.get(other) ?? []
          expect(before).not.toContain(item.group)
          passed.set(other, [...before, item.group])
        }
        passed.set(item.group, [])
      }
    }),
  )
})
