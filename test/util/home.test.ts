import { execFileSync } from "node:child_process"
import { userInfo } from "node:os"
import { resolve } from "node:path"
import { expect, test } from "vitest"

/** Returns the home directory that a process with this `HOME` uses. */
function homeWith(HOME: string): string {
  const file = resolve(import.meta.dirname, "../../src/util/paths.ts")
  const code = `import { homeDirectory } from ${JSON.stringify(file)}; process.stdout.write(homeDirectory())`
  return execFileSync(process.execPath, ["--input-type=module", "-e", code], {
    env: { HOME },
    encoding: "utf8",
  })
}

test("uses the system's home directory if HOME is empty", () => {
  expect(homeWith("/srv/somebody")).toBe("/srv/somebody")
  expect(homeWith("")).toBe(userInfo().homedir)
})
