import { describe, expect, test } from "vitest"
import { edit } from "./edit.ts"

const file = `function run() {
  const kept = 1
  const path = locate(kept)
  write(path)
}
`

describe("a mark for left out lines", () => {
  const old = "function run() {\n  // ... existing code ...\n}\n"

  test("keeps the lines it stands for", () => {
    expect(edit(file, old, old.replace("run()", "start()"))).toEqual({
      strategy: "left-out-lines",
      text: file.replace("run()", "start()"),
    })
  })

  test("keeps them before or after added lines", () => {
    expect(edit(file, old, old.replace("{\n", "{\n  begin()\n"))).toMatchObject({
      text: file.replace("{\n", "{\n  begin()\n"),
    })
    expect(edit(file, old, old.replace("\n}", "\n  end()\n}"))).toMatchObject({
      text: file.replace("\n}", "\n  end()\n}"),
    })
  })

  test.each([
    ["the new text drops the mark", "function run() {\n}\n"],
    ["the new text has another mark", "function run() {\n  // ... rest ...\n}\n"],
    ["the new text has a second mark", "function run() {\n  // ... existing code ...\n  ...\n}\n"],
  ])("is refused if %s", (_, fresh) => {
    expect(edit(file, old, fresh)).toMatchObject({ unclear: "left-out" })
  })
})

test("lines left out without a mark are not found", () => {
  const old = "function run() {\n  const kept = 1\n  write(path)\n}\n"
  expect(edit(file, old, old.replace("run", "start"))).toMatchObject({ kind: "missing" })
})
