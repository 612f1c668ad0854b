import { existsSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname } from "node:path"
import { expect, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"

test("creates a directory only for spilled output and removes it on disposal", async () => {
  let directory = ""
  {
    await using ctx = fakeContext({ directory: "/" })
    const before = leftovers()
    const file = ctx.spill()
    file.write("much")
    file.close()
    directory = dirname(file.path)
    expect(before).not.toContain(basename(directory))
    expect(readFileSync(file.path, "utf8")).toBe("much")
  }
  expect(existsSync(directory)).toBe(false)
})

function leftovers(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith("tackle-spill-"))
}
