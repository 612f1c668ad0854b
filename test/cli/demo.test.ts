import { existsSync, readdirSync } from "node:fs"
import { mkdir, readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

const script = resolve(import.meta.dirname, "../../scripts/demo.ts")

test("repairs a copy, keeps it and prints where it is", async () => {
  const machine = await createMachine({ config: null })
  const temporary = join(machine.home, "tmp")
  await mkdir(temporary)
  const command: [string, string] = [process.execPath, script]
  const env = { TMPDIR: temporary }
  const { code, stdout } = await machine.run([], { command, env, timeoutMs: 100_000 })
  expect(code, stdout).toBe(0)
  const [name = "", ...others] = readdirSync(temporary).filter((each) => each.startsWith("tackle-demo-"))
  expect(others).toEqual([])
  const project = join(temporary, name)
  expect(await readFile(join(project, "src/cart.js"), "utf8")).toContain("(1 - discount)")
  expect(stdout).toContain(`  rm -r ${project}  `)
}, 120_000)

test("leaves no files after a demo that fails", async () => {
  const machine = await createMachine({ config: null, files: { file: "" } })
  const temporary = join(machine.home, "tmp")
  await mkdir(temporary)
  const env = { TMPDIR: temporary, TACKLE_DATA_DIR: machine.project.path("file/data") }
  const { code } = await machine.run([], { command: [process.execPath, script], env })
  expect(code).not.toBe(0)
  expect(existsSync(temporary) && readdirSync(temporary).filter((each) => /demo/.test(each))).toEqual([])
})
