import fc from "fast-check"
import { expect, test } from "vitest"
import { Headers as Lean } from "../../src/model/http-fetch.ts"

const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,8}$/)
const value = fc.stringMatching(/^[ -~]{0,12}$/)

test("behaves like the global Headers after any sequence of set, append and delete", () => {
  const step = fc.tuple(fc.constantFrom("set" as const, "append" as const, "delete" as const), name, value)
  fc.assert(
    fc.property(fc.dictionary(name, value), fc.array(step), (init, steps) => {
      const ours = new Lean(init)
      const theirs = new Headers(init)
      for (const [method, key, text] of steps) {
        ours[method](key, text)
        theirs[method](key, text)
      }
      expect([...ours]).toEqual([...theirs])
      for (const [, key] of steps)
        expect([ours.get(key), ours.has(key)]).toEqual([theirs.get(key), theirs.has(key)])
    }),
  )
})

test("keeps empty values", () => {
  const ours = new Lean({ z: "" })
  const theirs = new Headers({ z: "" })
  ours.append("z", "")
  theirs.append("z", "")
  expect([...ours]).toEqual([...theirs])
})

test("copies other headers and iterates them", () => {
  const first = new Lean([
    ["B", "2"],
    ["a", "1"],
  ])
  const seen: string[] = []
  new Lean(first).forEach((text, key) => {
    seen.push(`${key}=${text}`)
  })
  expect(seen).toEqual(["a=1", "b=2"])
})

test.each([
  ["bad name", "x"],
  ["x", "a\r\nb"],
  ["x", "→"],
  ["", "x"],
])("%j: %j is refused", (key, text) => {
  expect(() => new Lean([[key, text]])).toThrow(TypeError)
  expect(() => new Headers([[key, text]])).toThrow(TypeError)
})
