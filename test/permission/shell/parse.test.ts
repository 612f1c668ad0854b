import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { cachedDataVersionTag } from "node:v8"
import { expect, test } from "vitest"
import { parseShell } from "../../../src/permission/shell/parse.ts"

test("restores the flags of V8 after parsing", async () => {
  const before = cachedDataVersionTag()
  await parseShell("f() { cat <(ls); }; f", { left: 2_000 })
  expect(cachedDataVersionTag()).toBe(before)
})

// The process measures itself while it works. Its `maxRSS` would include the memory of the process that started it.
test("does not use more memory after many commands", async () => {
  const script = `
    import { parseShell } from ${JSON.stringify(import.meta.resolve("../../../src/permission/shell/parse.ts"))}
    let peak = 0
    for (let index = 0; index < 3_000; index += 1) {
      await parseShell("for i in $(seq 20); do echo step " + index + " line $i; done", { left: 2_000 })
      peak = Math.max(peak, process.memoryUsage.rss())
    }
    console.log(peak)`
  const args = ["--input-type=module", "--eval", script]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  expect(Number(stdout)).toBeLessThan(250e6)
})
