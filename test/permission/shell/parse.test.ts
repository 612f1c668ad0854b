import { cachedDataVersionTag } from "node:v8"
import { expect, test } from "vitest"
import { parseShell } from "../../../src/permission/shell/parse.ts"

test("loading the parser leaves V8's flags as they were: what is compiled with others is taken by no later run", async () => {
  const before = cachedDataVersionTag()
  await parseShell("f() { cat <(ls); }; f")
  expect(cachedDataVersionTag()).toBe(before)
})
