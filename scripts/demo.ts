/**
 * Shows the agent at work on a copy of `examples/shop`, without an API key. The built-in model fixes a bug, and the
 * script prints the session. Keeps the copy if the run succeeds.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const project = mkdtempSync(join(tmpdir(), "tackle-demo-"))
let isRepaired = false
process.on("exit", () => {
  if (!isRepaired) rmSync(project, { recursive: true, force: true })
})
process.on("SIGINT", () => process.exit(130))
cpSync(join(root, "examples/shop"), project, { recursive: true })

const request = [
  "list the files",
  "find TODO in src",
  "replace (1 + discount) with (1 - discount) in src/cart.js",
  "run npm test",
].join(", then ")

tackle(
  "run",
  "--dir",
  project,
  "--model",
  "tackle/offline",
  "--allow",
  "edit:src/*",
  "--allow",
  "bash:npm test",
  request,
)
isRepaired = true
tackle("session", "list", "--dir", project)
process.stdout.write(`
The fixed copy is in ${project}
  bin/tackle session show --dir ${project}   shows what was done
  bin/tackle session undo --dir ${project}   restores the file
  rm -r ${project}                           removes the copy
To try Tackle on your own project: bin/tackle --dir PROJECT
`)

function tackle(...args: string[]): void {
  process.stdout.write(
    `\n$ tackle ${args.map((arg) => (/^[\w./:-]+$/.test(arg) ? arg : `'${arg}'`)).join(" ")}\n`,
  )
  const { status } = spawnSync(join(root, "bin/tackle"), args, { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}
