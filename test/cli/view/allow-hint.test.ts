import { expect, test } from "vitest"
import { allowHint } from "../../../src/cli/view/allow-hint.ts"

test("the flags that would have allowed it, each once, as a shell takes them", () => {
  const asked = { permission: "bash", patterns: ["echo 'a'", "echo 'a'"] }
  expect(allowHint([asked, { permission: "edit", patterns: ["a.txt"] }])).toMatch(
    /: --allow 'bash:echo '\\''a'\\''' --allow 'edit:a\.txt'$/,
  )
})

test("no flag for what is long, has lines, or would write to the terminal", () => {
  const patterns = ["x".repeat(61), "a\nb", "a\u001b[2Jb"]
  expect(allowHint([{ permission: "bash", patterns }])).toBeUndefined()
  expect(allowHint([])).toBeUndefined()
})
