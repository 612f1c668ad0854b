import { expect, test } from "vitest"
import { allowHint } from "../../../src/cli/view/allow-hint.ts"

test("suggests each flag that would have allowed the call once, quoted for a shell", () => {
  const asked = { permission: "bash", patterns: ["echo 'a'", "echo 'a'"] }
  expect(allowHint([asked, { permission: "edit", patterns: ["a.txt"] }])).toMatch(
    /: --allow 'bash:echo '\\''a'\\''' --allow 'edit:a\.txt'$/,
  )
})

test("suggests no flag for a long or multi-line pattern, or one with control characters", () => {
  const patterns = ["x".repeat(61), "a\nb", "a\u001b[2Jb"]
  expect(allowHint([{ permission: "bash", patterns }])).toBeUndefined()
  expect(allowHint([])).toBeUndefined()
})
