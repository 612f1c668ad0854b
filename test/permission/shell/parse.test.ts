import { cachedDataVersionTag } from "node:v8"
import { expect, test } from "vitest"
import { parseShell } from "../../../src/permission/shell/parse.ts"

test("restores the flags of V8 after loading the parser", async () => {
  const before = cachedDataVersionTag()
  await parseShell("f() { cat <(ls); }; f", { left: 2_000 })
  expect(cachedDataVersionTag()).toBe(before)
})
