import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine, runDoctor } from "./run-tackle.ts"

const manifest = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../package.json"), "utf8"))

test("prints help and version without a config or a writable directory", async () => {
  const machine = await createMachine({ files: { file: "" } })
  const env = { TACKLE_DATA_DIR: machine.project.path("file/data"), TACKLE_CONFIG_CONTENT: "{broken" }
  const run = (...args: string[]) => machine.run(args, { env })
  const [version, help, alone, runHelp, ofRun, permission, exportHelp, ofExport, ofNone] = await Promise.all([
    run("--version"),
    run("--help"),
    run(),
    run("run", "--help"),
    run("help", "run"),
    run("permission", "--help"),
    run("session", "export", "--help"),
    run("help", "session", "export"),
    run("help", "session", "nope"),
  ])
  expect(version).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: "" })
  expect(help).toMatchObject({ code: 0, stderr: "" })
  expect(alone).toMatchObject({ code: 0, stdout: help.stdout })
  expect(runHelp).toMatchObject({ code: 0, stdout: ofRun.stdout })
  expect(exportHelp.stdout).toContain("--sanitize")
  expect(ofExport).toMatchObject({ code: 0, stdout: exportHelp.stdout, stderr: "" })
  expect(ofNone).toMatchObject({ code: 2, stdout: "" })
  for (const name of ["run", "tool", "session", "config", "models", "trust", "doctor"]) {
    expect(help.stdout).toMatch(new RegExp(`^ {2}${name}\\b`, "m"))
  }
  for (const flag of [
    "--model",
    "--agent",
    "--session",
    "--continue",
    "--format",
    "--auto",
    "--allow",
    "--deny",
  ]) {
    expect(runHelp.stdout).toContain(flag)
  }
  for (const line of (help.stdout + runHelp.stdout + permission.stdout).split("\n"))
    expect(line.length).toBeLessThanOrEqual(80)
})

test("reports an unusable shell and an unusable model in doctor", async () => {
  const machine = await createMachine({ config: { shell: "/nope/sh", model: "w/m", provider: { w: {} } } })
  const { code, stdout } = await runDoctor(machine, "--format", "json")
  expect(code).toBe(1)
  const { findings } = JSON.parse(stdout) as { findings: { check: string; status: string; detail: string }[] }
  const failed = findings.filter(({ status }) => status === "fail")
  expect(failed.map(({ check }) => check)).toEqual(["shell", "model"])
  expect(failed[0]?.detail).toContain("/nope/sh")
  expect(failed[1]?.detail).toContain("provider.w.options.baseURL is missing")
})

test("shows the config without keys, prints its schema, lists models and runs doctor", async () => {
  const machine = await createMachine({
    config: { permission: { bash: { "git push*": "deny" } } },
    files: { "opencode.json": '{ "theme": "dark", "permission": { "edit": "deny" } }' },
  })
  const secret = { provider: { own: { options: { apiKey: "sk-secret", headers: { "x-token": "hidden" } } } } }
  const env = { TACKLE_CONFIG: machine.project.path("extra.json") }
  await machine.project.write("extra.json", JSON.stringify(secret))
  const [text, json, schema, models, modelsJson, doctor, doctorJson] = await Promise.all([
    machine.run(["config", "show"], { env }),
    machine.run(["config", "show", "--format", "json"], { env }),
    machine.run(["config", "schema"]),
    machine.run(["models"]),
    machine.run(["models", "--format", "json"]),
    machine.run(["doctor"]),
    runDoctor(machine, "--format", "json"),
  ])
  expect(text.code).toBe(0)
  expect(text.stdout).toContain(`${env.TACKLE_CONFIG} (tackle, env)`)
  expect(text.stdout).toMatch(/^ {2}deny {2}bash: git push\* {3}\(TACKLE_CONFIG_CONTENT:1\)$/m)
  expect(text.stdout).toMatch(/^ {2}deny {2}edit: \* {3}\(.*opencode\.json:1\)$/m)
  expect(text.stdout).toContain("this project is not trusted: opencode.json: theme")
  for (const output of [text.stdout, json.stdout]) {
    expect(output).not.toContain("sk-secret")
    expect(output).not.toContain("hidden")
  }
  expect(JSON.parse(json.stdout)).toMatchObject({ projectTrusted: false, config: { model: "test/m" } })
  expect(JSON.parse(schema.stdout)).toMatchObject({
    type: "object",
    properties: { permission: {}, provider: {} },
  })
  expect(models.stdout).toMatch(/^test\/m {2}m \(configured\)$/m)
  expect(models.stdout).toMatch(/^tackle\/offline /m)
  expect(JSON.parse(modelsJson.stdout)).toMatchObject({
    current: "test/m",
    models: [{ ref: { modelID: "m" } }, {}],
  })
  expect(doctor.code).toBe(0)
  for (const check of ["node", "data directory", "config", "search", "shell parser", "tools", "model"]) {
    expect(doctor.stdout).toMatch(new RegExp(`^[✓!] ${check} `, "m"))
  }
  const { findings } = JSON.parse(doctorJson.stdout)
  expect(findings.every(({ status }: { status: string }) => ["ok", "warn"].includes(status))).toBe(true)
})

test("merges files of the user and of the project in order, then flags", async () => {
  const machine = await createMachine({ config: null, files: { "tackle.toml": 'model = "test/project"\n' } })
  const user = join(machine.home, "config/tackle")
  const { mkdir, writeFile } = await import("node:fs/promises")
  await mkdir(user, { recursive: true })
  await writeFile(join(user, "tackle.jsonc"), '{ "model": "test/user", /* mine */ "default_agent": "plan" }')
  const show = async (...flags: string[]) =>
    JSON.parse((await machine.run(["config", "show", "--format", "json", ...flags])).stdout).config
  expect(await show()).toEqual({ model: "test/user", default_agent: "plan" })
  expect(await show("--trust")).toEqual({ model: "test/project", default_agent: "plan" })
})

test("shows which rules of an untrusted project do not apply, and why", async () => {
  const permission = { edit: { "*": "allow", "notes\u001b[2J.md": "deny" } }
  const machine = await createMachine({
    config: null,
    files: { "tackle.json": JSON.stringify({ permission }, null, 1) },
  })
  const [text, json, trusted] = await Promise.all([
    machine.run(["config", "show"]),
    machine.run(["config", "show", "--format", "json"]),
    machine.run(["config", "show", "--trust"]),
  ])
  expect(text.stdout).toMatch(/^ {2}allow edit: \* .* ignored, because an untrusted file/m)
  expect(text.stdout).toMatch(/^ {2}deny {2}edit: notes<U\+001B>\[2J\.md {3}\(\S*tackle\.json:5\)$/m)
  expect(text.stdout).toContain("not trusted: tackle.json: allow rules")
  expect(JSON.parse(json.stdout).permission).toMatchObject({
    project: [],
    untrusted: [
      { action: "allow", counts: false, reason: expect.any(String) },
      { action: "deny", counts: true },
    ],
  })
  expect(trusted.stdout).not.toContain("ignored, because an untrusted")
})

test("reports rules that never decide in config show and doctor", async () => {
  const rules = `{ "permission": { "bash": {
    "rm *": "deny",
    "*": "allow" } },
    "agent": { "build": { "permission": { "bash": {
    "make": "ask",
    "*": "deny" } } } } }`
  const machine = await createMachine({ config: null, files: { "tackle.json": rules } })
  const [show, json, doctor] = await Promise.all([
    machine.run(["config", "show", "--trust"]),
    machine.run(["config", "show", "--trust", "--format", "json"]),
    runDoctor(machine, "--trust"),
  ])
  expect(show.stdout).toMatch(
    /deny {2}bash: rm \* {3}\(.*tackle\.json:2\) {3}never applies, because .*tackle\.json:3 takes precedence\n/,
  )
  expect(show.stdout.match(/never applies/g)).toHaveLength(2)
  expect(JSON.parse(json.stdout).shadowed).toMatchObject([
    { rule: { pattern: "rm *", source: { line: 2 } }, by: { pattern: "*", source: { line: 3 } } },
    { rule: { pattern: "make", source: { line: 5 } }, by: { source: { line: 6 } } },
  ])
  expect(doctor.code).toBe(0)
  expect(doctor.stdout).toMatch(
    /^! rules .*tackle\.json:2 \(deny bash: rm \*\) never applies, because .*tackle\.json:3 takes precedence; /m,
  )
})
