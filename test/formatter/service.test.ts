import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { FormatterConfig } from "../../src/formatter/config.ts"
import { createFormatterService, type FormatterRun } from "../../src/formatter/service.ts"

let directory: string

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-formatters-")))
  await mkdir(join(directory, "bin"))
  await mkdir(join(directory, "project/src"), { recursive: true })
  for (const name of ["biome", "gofmt"]) {
    await writeFile(join(directory, "bin", name), "#!/bin/sh\n", { mode: 0o755 })
  }
})

afterEach(() => rm(directory, { recursive: true, force: true }))

const at = (name: string) => join(directory, "project", name)

function service(config: FormatterConfig) {
  return createFormatterService({
    config,
    worktree: join(directory, "project"),
    trusted: false,
    environment: { PATH: join(directory, "bin") },
  })
}

test("true enables installed formatters that the project is set up for", async () => {
  expect(service(true)?.handles(at("src/a.go"))).toBe(true)
  expect(service(true)?.handles(at("src/a.ts"))).toBe(false)
  expect(service(true)?.handles(at("src/a.rs"))).toBe(false)
  await writeFile(at("biome.json"), "{}")
  expect(service(true)?.handles(at("src/a.ts"))).toBe(true)
  expect(service(true)?.handles(join(directory, "a.ts"))).toBe(false)
})

test("a named formatter runs in every project", () => {
  const named = service({ biome: { extensions: [".x"] }, gofmt: { disabled: true } })
  expect(named?.handles(at("src/a.x"))).toBe(true)
  expect(named?.handles(at("src/a.ts"))).toBe(false)
  expect(named?.handles(at("src/a.go"))).toBe(false)
})

test("no formatter runs without a configuration, with false, or if all are disabled", () => {
  expect(service(false)).toBeUndefined()
  expect(service({ biome: { disabled: true } })).toBeUndefined()
})

test("an unknown formatter needs a command and extensions", () => {
  expect(() => service({ mine: { command: ["mine"] } })).toThrow(/The formatter "mine" is unknown/)
  expect(FormatterConfig.safeParse({ mine: { command: [], extensions: ["ts"] } }).success).toBe(false)
  expect(FormatterConfig.safeParse({ mine: { command: ["a", "$FILE"], extensions: [".ts"] } }).success).toBe(
    true,
  )
})

test("a failure is reported with the line that names the error", async () => {
  await writeFile(
    join(directory, "bin/crash"),
    "#!/bin/sh\necho 'loader:1 throw err' >&2; echo 'Error: there is no module' >&2; echo 'Node.js v0' >&2; exit 1\n",
    { mode: 0o755 },
  )
  const crash = { command: ["crash", "$FILE"], extensions: [".txt"], runsProjectCode: false }
  const runs: FormatterRun[] = []
  for await (const run of service({ crash })?.format(at("a.txt"), new AbortController().signal) ?? [])
    runs.push(run)
  expect(runs).toMatchObject([{ problem: "ended with exit code 1: Error: there is no module" }])
})
