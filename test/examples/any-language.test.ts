import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine, type Machine } from "../cli/run-tackle.ts"

const example = resolve(import.meta.dirname, "../../examples/any-language")

test("runs no executable before it is trusted, not even with --describe", async () => {
  const machine = await openExample()
  await machine.project.write(".tackle/tool/spy", "#!/bin/sh\ntouch ran\n")
  chmodSync(machine.project.path(".tackle/tool/spy"), 0o755)
  const before = await machine.run(["tool", "list"])
  expect(before.stdout).not.toContain("disk_free")
  expect(before.stderr).toContain(".tackle/tool/spy")
  const listed = await machine.run(["trust", "--list"])
  expect(listed.stdout).toContain("code that runs with your permissions, as the tool disk_free")
  expect(existsSync(machine.project.path("ran"))).toBe(false)

  await machine.trust()
  const after = await machine.run(["tool", "list"])
  expect(after.stdout).toMatch(/^disk_free /m)
  expect(after.stderr).toContain("spy: --describe did not print a JSON object")
  expect(existsSync(machine.project.path("ran"))).toBe(true)
})

test("asks before the tool starts, and returns what the page says", async () => {
  const machine = await openExample()
  await machine.trust()
  const call = (...flags: string[]) => machine.run(["tool", "call", "disk_free", "{}", ...flags])
  expect(await call()).toMatchObject({ code: 3, stdout: "" })
  expect(await call("--allow", "disk_free")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+ KB are free\.\n$/),
  })
})

test("stops a tool after the timeout of its manifest", async () => {
  const machine = await openExample()
  const manifest = '{"name":"hang","description":"d","parameters":{"type":"object"},"timeout":300}'
  await machine.project.write(
    ".tackle/tool/hang",
    `#!/bin/sh\n[ "$1" = --describe ] && echo '${manifest}' && exit\nexec sleep 1000\n`,
  )
  chmodSync(machine.project.path(".tackle/tool/hang"), 0o755)
  await machine.trust()
  const hung = await machine.run(["tool", "call", "hang", "{}", "--allow", "hang"])
  expect(hung.code).not.toBe(0)
  expect(hung.stderr).toContain("did not finish within 300 ms")
})

const hasRust = spawnSync("rustc", ["--version"]).status === 0

test.runIf(hasRust)("builds the Rust tool, which asks for the file as the page says", async () => {
  const machine = await openExample()
  const build = ["-O", "rust/longest_line.rs", "-o", ".tackle/tool/longest_line"]
  execFileSync("rustc", build, { cwd: machine.project.directory, stdio: "pipe" })
  await machine.trust()
  const call = (...flags: string[]) =>
    machine.run(["tool", "call", "longest_line", '{"file":"notes.txt"}', "--allow", "longest_line", ...flags])
  expect(await call()).toMatchObject({
    code: 0,
    stdout: "The quick brown fox jumps over the lazy dog.\n",
  })
  expect(await call("--deny", "read")).toMatchObject({ code: 3, stdout: "" })
})

async function openExample(): Promise<Machine> {
  const machine = await createMachine({ config: null })
  cpSync(example, machine.project.directory, { recursive: true })
  return machine
}
