import { describe, expect, test } from "vitest"
import { edit } from "./edit.ts"

const file = `function run() {
  const kept = 1

  return {
    async put(bytes) {
      if (bytes.length > limit) return undefined
      const path = placeOf(bytes)
      write(path)
    },
  }
}
`

describe("a line left out beside one that is added or changed", () => {
  test("stays before it where the indentation of the new line lies in it", () => {
    const old =
      "  const kept = 1\n\n    async put(bytes) {\n      if (bytes.length > limit) return undefined\n"
    expect(edit(file, old, old.replace("    async", "    size: limit,\n    async"))).toEqual({
      strategy: "left-out-lines",
      text: file.replace("    async", "    size: limit,\n    async"),
    })
  })

  test("stays behind it where it closes what the new line lies in", () => {
    const old = "      const path = placeOf(bytes)\n      write(path)\n  }\n}\n"
    expect(
      edit(file, old, old.replace("      write(path)\n", "      write(path)\n      report(path)\n")),
    ).toMatchObject({
      text: file.replace("      write(path)\n", "      write(path)\n      report(path)\n"),
    })
  })

  test.each([
    ["the new line may come before or after it", "      report(path)\n"],
    ["of a changed line nobody knows if it was moved", undefined],
    ["comments are indented as they like", "// on disk\n"],
  ])("is refused: %s", (_, added) => {
    const old =
      "    async put(bytes) {\n      if (bytes.length > limit) return undefined\n      write(path)\n    },\n"
    const fresh =
      added === undefined
        ? old.replace("limit) return", "most) return")
        : old.replace("      write(path)", `${added}      write(path)`)
    expect(edit(file, old, fresh)).toMatchObject({ unclear: "left-out" })
  })
})

test("nor does indentation tell where a line lies in another without a bracket", () => {
  const bare = "function go(a) {\n  const b = a\n  if (a) return a\n  fail(b)\n}\n"
  const old = "function go(a) {\n  const b = a\n  if (a) return a\n}\n"
  expect(edit(bare, old, old.replace("if (a) return a", "if (a)\n    return a"))).toMatchObject({
    unclear: "left-out",
  })
})

test("a block in which one of the quoted lines stands once more is no place", () => {
  const twice = "a() {\n  fail()\n}\nb() {\n  fail()\n  compose()\n"
  expect(edit(twice, "  fail()\n}\n  compose()\n", "  fail()\n  compose()\n")).toMatchObject({
    unclear: "left-out",
  })
})
