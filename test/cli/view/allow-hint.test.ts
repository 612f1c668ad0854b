import { expect, test } from "vitest"
import { allowHint } from "../../../src/cli/view/allow-hint.ts"

test("suggests each flag that would have allowed the calls once, quoted for a shell", () => {
  const asked = { rules: ["bash:echo 'a'"] }
  expect(allowHint([asked, asked, { rules: ["edit:a.txt"] }])).toMatch(
    /: --allow 'bash:echo '\\''a'\\''' --allow 'edit:a\.txt'$/,
  )
})

test("suggests nothing if rules cannot allow every call", () => {
  expect(allowHint([{ rules: ["edit:a.txt"] }, { rules: [] }])).toBeUndefined()
  expect(allowHint([{}])).toBeUndefined()
  expect(allowHint([])).toBeUndefined()
})

test.each(["x".repeat(81), "a\nb", "a\u001b[2Jb"])("suggests no flag for the rule %j", (rule) => {
  expect(allowHint([{ rules: [rule] }])).toBeUndefined()
})
