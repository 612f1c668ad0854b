import { spawnSync } from "node:child_process"
import { describe, expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

const has = (shell: string) => spawnSync(shell, ["-c", "exit 0"]).status === 0

test("completes commands, flags and choices, and nothing where a file is expected", async () => {
  const machine = await createMachine({ config: null })
  const complete = async (...words: string[]) => {
    const { code, stdout } = await machine.run(["completion", "words", "--", ...words])
    expect(code).toBe(0)
    return stdout.split("\n").filter((word) => word !== "")
  }
  expect(await complete("ses")).toEqual(["session"])
  expect(await complete("session", "un")).toEqual(["undo"])
  expect(await complete("run", "--max-")).toEqual(["--max-steps", "--max-tokens", "--max-cost"])
  expect(await complete("run", "--format", "")).toEqual(["text", "json"])
  expect(await complete("run", "--agent", "session", "--fo")).toEqual(["--format", "--fork"])
  expect(await complete("models", "check", "--form")).toEqual(["--format"])
  expect(await complete("completion", "")).toEqual(["bash", "zsh", "fish"])
  expect(await complete("run", "--file", "")).toEqual([])
  expect(await complete("run", "READ")).toEqual([])
})

test("rejects an unknown shell", async () => {
  const machine = await createMachine({ config: null })
  const { code, stderr } = await machine.run(["completion", "tcsh"])
  expect(code).toBe(2)
  expect(stderr).toContain("bash, zsh")
})

describe.each(["bash", "zsh", "fish"])("the script for %s", (shell) => {
  test.skipIf(!has(shell))("is valid (needs the shell)", async () => {
    const machine = await createMachine({ config: null })
    const { stdout } = await machine.run(["completion", shell])
    const checked = await machine.run(["-n"], { command: [shell], stdin: stdout })
    expect(checked).toMatchObject({ code: 0, stderr: "" })
  })
})

test.skipIf(!has("bash"))("completes in bash", async () => {
  const machine = await createMachine({ config: null })
  const { stdout } = await machine.run(["completion", "bash"])
  const script = `${stdout}
COMP_WORDS=(tackle session re); COMP_CWORD=2; _tackle; echo "\${COMPREPLY[*]}"
COMP_WORDS=(tackle ""); COMP_CWORD=1; _tackle; echo "\${#COMPREPLY[@]}"`
  const run = await machine.run(["-c", script], { command: ["bash"] })
  expect(run.stdout).toMatch(/^redo\n2\d\n$/)
})
