import { execFile } from "node:child_process"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { expect, onTestFinished, test } from "vitest"

// The example imports "tackle" by name, which within the repository is what was built.
test("the engine works inside a program and leaves no files", async () => {
  const temporary = await mkdtemp(join(tmpdir(), "tackle-example-test-"))
  onTestFinished(() => rm(temporary, { recursive: true, force: true }))
  const example = resolve(import.meta.dirname, "../../examples/library/main.ts")
  const env = { PATH: process.env.PATH, HOME: temporary, TMPDIR: temporary }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [example], { env, timeout: 20_000 })
  expect(stderr).toBe("")
  expect(stdout.trim().split("\n")).toEqual([
    "read: trip.txt",
    'asked: weather {"city":"Bergen"}',
    "weather: Bergen",
    "completed: Take an umbrella.",
  ])
  expect(await readdir(temporary)).toEqual([])
})
