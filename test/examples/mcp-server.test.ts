import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { tackleCommand } from "../cli/run-tackle.ts"
import { openExample } from "./open-example.ts"

test("the client lists the tools and reads a file as the page says, and is refused what no rule allows", async () => {
  const machine = await openExample("mcp-server")
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ["client.mjs", ...args], {
      cwd: machine.project.directory,
      env: { ...machine.env, TACKLE: tackleCommand },
    })
  const page = readFileSync(machine.project.path("README.md"), "utf8")
  const { stdout } = await run("grep", '{"pattern":"buy","include":"*.txt"}')
  expect(page).toContain(`'{"pattern":"buy","include":"*.txt"}'\n${stdout}\`\`\``)

  await machine.project.write(".env", "KEY=1\n")
  const refused = await run("read", '{"filePath":".env"}')
  expect(refused.stdout).not.toContain("KEY=1")
})
