import { mkdir, stat, utimes, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { createMachine, runDoctor } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

const mistakes = '{\n  "modle": "a/b",\n  "retention": { "days": "365" }\n}\n'

test("runs commands on sessions despite a config error, and reports it in one line", async () => {
  const machine = await createMachine({ script: [{ text: "one" }, { text: "two" }] })
  const ids: string[] = []
  for (const prompt of ["first", "second"]) {
    const run = await machine.run(["run", "--format", "json", prompt])
    ids.push(JSON.parse(run.stdout.split("\n")[0] ?? "").sessionID)
  }
  const [first = "", second = ""] = ids
  await machine.project.write("tackle.json", mistakes)
  const file = machine.project.path("tackle.json")
  const user = join(machine.home, "config/tackle/tackle.json")
  await mkdir(dirname(user), { recursive: true })
  await writeFile(user, "{ nonsense")
  const line = expect.stringMatching(
    new RegExp(`^tackle: part of the config is invalid[^\\n]*: ${user}:1:3: [^\\n]*\\n$`),
  )
  const expectOutput = async (args: readonly string[], says: string) =>
    expect(await machine.run(args), args.join(" ")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(says),
      stderr: line,
    })
  await Promise.all([
    expectOutput(["session", "list"], first),
    expectOutput(["session", "show", first], "first"),
    expectOutput(["stats"], "2 sessions"),
    expectOutput(["permission", "list"], "This project has no grants"),
    expectOutput(["trust", "--list"], "tackle.json"),
  ])
  await expectOutput(["session", "delete", first], `Deleted ${first}.`)
  await expectOutput(["session", "prune", "--keep", "1"], "Deleted 0 sessions.")
  await expectOutput(["trust", "--revoke"], "no longer trusted")
  // Exports are made to be shared, and a broken config cannot say which keys to hide.
  const exported = ["session", "export", second]
  const refused = [
    ["run", "x"],
    ["tool", "list"],
    ["models"],
    ["config", "show"],
    ["trust", "--yes"],
    exported,
  ]
  await Promise.all(
    refused.map(async (args) => {
      const { code, stdout, stderr } = await machine.run(args)
      expect([code, stdout], args.join(" ")).toEqual([2, ""])
      expect(stderr).toContain(`${user}:1:3: expected`)
    }),
  )
  const trusted = await machine.run(["session", "show", second, "--verbose"], {
    env: { TACKLE_CONFIG: file },
  })
  expect(trusted).toMatchObject({ code: 0, stdout: expect.stringContaining("second") })
  expect(trusted.stderr).toContain("(2 more problems: run")
})

test("reports every config error in doctor as a failed check, and continues", async () => {
  const machine = await createMachine({ config: null })
  const file = machine.project.path("tackle.json")
  await machine.project.write("tackle.json", `${mistakes.slice(0, -2)},\n  "model": "test/m" }`)
  const [text, json] = await Promise.all([
    runDoctor(machine, "--trust"),
    runDoctor(machine, "--trust", "--format", "json"),
  ])
  expect([text.code, json.code]).toEqual([1, 1])
  expect(text.stdout).toContain(
    `✗ config         ${file}:2:3: unknown key "modle". Did you mean "model"?\n` +
      `                 ${file}:3:18: retention.days: expected a number, found a string. Write it without quotes.\n`,
  )
  const { findings } = JSON.parse(json.stdout) as {
    findings: { check: string; status: string; detail: string }[]
  }
  // The model fails too: its provider is declared in the same file.
  expect(findings.filter(({ status }) => status === "fail").map(({ check }) => check)).toEqual([
    "config",
    "model",
  ])
  expect(findings.find(({ check }) => check === "model")?.detail).toContain("test")
  expect(findings.map(({ check }) => check)).toContain("sandbox")
})

test("removes no files while their retention period is unknown", async () => {
  const machine = await createMachine({ config: null })
  const old = join(machine.data, "truncate/ses_1/1.txt")
  const user = join(machine.home, "config/tackle/tackle.json")
  for (const path of [old, user]) await mkdir(dirname(path), { recursive: true })
  await writeFile(user, mistakes)
  await writeFile(old, "kept")
  const day = 24 * 3600 * 1000
  for (const path of [old, dirname(old)]) await utimes(path, new Date(), new Date(Date.now() - 30 * day))
  await machine.run(["session", "list"])
  await runDoctor(machine)
  expect((await stat(old)).size).toBe(4)
})

test.skipIf(!hasTmux)("prints the details of a check below each other in a terminal", async () => {
  const machine = await createMachine({ config: null })
  await machine.project.write("tackle.json", mistakes)
  const terminal = await openTerminal(machine)
  await terminal.tackle("doctor")
  const screen = await terminal.sees("[exit 0]")
  expect(screen).toMatch(/^! config {9}\/\S*:2:3: .*\n( {19}\S.*\n)* {17}\/\S*:3:18: /m)
  expect(await terminal.broken()).toEqual([])
})
