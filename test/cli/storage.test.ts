import { spawnSync } from "node:child_process"
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { callsOf, createMachine, endOf, runDoctor, tackleCommand } from "./run-tackle.ts"

test("reports an unusable database with the next step, and leaves it unchanged", async () => {
  const machine = await createMachine({ script: [{ text: "Never." }] })
  const path = join(machine.data, "tackle.db")
  await machine.run(["session", "list"])
  const newer = new DatabaseSync(path)
  newer.exec("PRAGMA user_version = 999")
  newer.close()
  const before = await readFile(path)
  for (const args of [
    ["run", "hi"],
    ["session", "list"],
    ["tool", "list"],
  ]) {
    const run = await machine.run(args)
    expect(run).toMatchObject({ code: 1, stdout: "" })
    expect(run.stderr).toMatch(
      /^tackle: The database \/.*tackle\.db has version 999; .*Update Tackle, or set TACKLE_DATA_DIR/,
    )
    expect(run.stderr).not.toContain("defect")
  }
  expect(await readFile(path)).toEqual(before)

  await writeFile(path, "this is no database at all, but long enough to look into ".repeat(40))
  const corrupt = await machine.run(["run", "hi"])
  expect(corrupt).toMatchObject({ code: 1, stdout: "" })
  expect(corrupt.stderr).toMatch(
    /tackle\.db is not a SQLite database\. Move it to another directory, then restart Tackle/,
  )
  expect(machine.server.requests).toEqual([])
  const checked = await runDoctor(machine)
  expect(checked.code).toBe(1)
  expect(checked.stdout).toContain("tackle.db is not a SQLite database")
})

test("lists and counts the other sessions if one row is damaged", async () => {
  const machine = await createMachine({ script: [{ text: "One." }, { text: "Two." }, { text: "Three." }] })
  for (const prompt of ["first", "second", "third"]) await machine.run(["run", prompt])
  const database = new DatabaseSync(join(machine.data, "tackle.db"))
  const ids = database
    .prepare("SELECT id FROM sessions ORDER BY id")
    .all()
    .map(({ id }) => String(id))
  database.prepare("UPDATE sessions SET data = '{' WHERE id = ?").run(ids[0] ?? "")
  database.prepare("UPDATE messages SET data = 'null' WHERE session_id = ?").run(ids[1] ?? "")
  database.close()
  const listed = await machine.run(["session", "list", "--format", "json"])
  expect(listed.code).toBe(0)
  expect(listed.stdout).toContain(ids[1])
  expect(listed.stdout).toContain(ids[2])
  expect(listed.stdout).not.toContain(ids[0])
  const stats = await machine.run(["stats", "--format", "json"])
  expect(stats.code).toBe(0)
  expect(JSON.parse(stats.stdout)).toMatchObject({ sessions: expect.any(Number) })
  expect(stats.stderr).toContain(`the session ${ids[1]} cannot be read and is not counted`)
})

test("reports a data directory that cannot be created with the variable that moves it", async () => {
  const machine = await createMachine({ files: { file: "" } })
  const env = { TACKLE_DATA_DIR: machine.project.path("file", "data") }
  const run = await machine.run(["run", "hi"], { env })
  expect(run).toMatchObject({ code: 1, stdout: "" })
  expect(run.stderr).toMatch(
    /^tackle: The database .*file\/data\/tackle\.db cannot be written \(ENOTDIR\)\..*TACKLE_DATA_DIR/,
  )
  expect((await machine.run(["trust"], { env })).code).toBe(0)
  const doctor = await machine.run(["doctor"], { env })
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toMatch(/^✗ data directory .*file\/data/m)
})

test("returns output whose full text cannot be stored, with a note", async () => {
  const machine = await createMachine({
    config: { truncate: { spillBytes: 5_000 } },
    files: { "long.txt": "line\n".repeat(5_000) },
    script: ({ body }) => {
      if (body.messages.at(-1)?.role === "tool") return { text: "Done." }
      return {
        calls: [{ name: "bash", arguments: { command: "cat long.txt; echo last", description: "Say much" } }],
      }
    },
  })
  const capped = callsOf(await machine.run(["run", "--auto", "--format", "json", "go"]))[0]?.[2] ?? ""
  expect(capped).toMatch(/^\[Output truncated: 5001 lines.*The part up to the file size limit: \/\S+\.txt\./)
  expect(capped).toMatch(/\nlast\n/)
  const [file] = /\/\S+\.txt/.exec(capped) ?? []
  expect(await readFile(String(file), "utf8")).toContain(
    "[Truncated: this file reached its limit of 5000 bytes.]",
  )

  await machine.run(["session", "list"])
  const { rm } = await import("node:fs/promises")
  await rm(join(machine.data, "truncate"), { recursive: true })
  await writeFile(join(machine.data, "truncate"), "in the way")
  const run = await machine.run(["run", "--auto", "--format", "json", "go"])
  expect(endOf(run).exitCode).toBe(0)
  const [, status, text] = callsOf(run)[0] ?? []
  expect(status).toBe("completed")
  expect(text).toMatch(
    /^\[Output truncated: 5001 lines.*The full text could not be saved \(.*(EEXIST|ENOTDIR)/,
  )
  expect(text).toMatch(/\nlast\n/)
  const byHand = await machine.run(["tool", "call", "bash", '{"command":"cat long.txt","description":"x"}'])
  expect(byHand).toMatchObject({ code: 0, stdout: expect.stringContaining("could not be saved") })
})

test("works without a log that cannot be written", async () => {
  const machine = await createMachine({ script: [{ text: "Said." }] })
  await mkdir(join(machine.data, "log"), { recursive: true })
  await chmod(join(machine.data, "log"), 0o500)
  expect(await machine.run(["run", "hi"])).toMatchObject({ code: 0, stdout: "Said.\n" })
})

test("names a damaged row deep inside a session, and keeps other sessions usable", async () => {
  const machine = await createMachine({ script: ["one", "two", "three", "four"].map((text) => ({ text })) })
  await machine.run(["run", "first"])
  for (const prompt of ["second", "third"]) await machine.run(["run", "--continue", prompt])
  const database = new DatabaseSync(join(machine.data, "tackle.db"))
  const select = "SELECT session_id, message_id, id FROM parts ORDER BY message_id, id LIMIT 1 OFFSET 5"
  const { session_id: session, message_id: message, id } = database.prepare(select).get() ?? {}
  const named = `The part ${id} of message ${message} in session ${session} is damaged: `
  async function expectNamed(...args: string[]): Promise<void> {
    const ended = await machine.run(args)
    expect(ended.code).toBe(1)
    expect(ended.stderr.split("\n").filter((line) => line.includes(named))).toHaveLength(1)
    expect(ended.stderr).toContain(`tackle session delete ${session}`)
    expect(ended.stderr).not.toContain("bug in Tackle")
  }
  for (const damage of ['{"id":"prt', "null", "[]", "{}"]) {
    database.prepare("UPDATE parts SET data = ? WHERE id = ?").run(damage, String(id))
    await expectNamed("session", "show", String(session))
  }
  database.close()
  await expectNamed("session", "export", String(session))
  await expectNamed("run", "--continue", "more")
  const doctor = await runDoctor(machine)
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toContain(`✗ data directory ${named}`)
  expect(await machine.run(["run", "a new session"])).toMatchObject({ code: 0, stdout: "four\n" })
  expect(await machine.run(["session", "list"])).toMatchObject({ code: 0, stderr: "" })
  expect(await machine.run(["session", "delete", String(session)])).toMatchObject({ code: 0 })
  expect((await runDoctor(machine)).stdout).toMatch(/^✓ data directory/m)
})

test("reads sessions of a data directory that the user cannot write, and refuses a run in one line", async (context) => {
  const machine = await createMachine({ script: [{ text: "Said." }] })
  await machine.run(["run", "hi"])
  for (const directory of [machine.home, machine.project.directory]) await chmod(directory, 0o755)
  await chmod(machine.data, 0o555)
  for (const { name } of await readdir(machine.data, { withFileTypes: true }))
    await chmod(join(machine.data, name), 0o555)
  const asOther = ["--reuid=65534", "--regid=65534", "--clear-groups"]
  const isRoot = process.getuid?.() === 0
  const probe = isRoot && spawnSync("setpriv", [...asOther, tackleCommand, "--version"], { env: machine.env })
  if (probe && probe.status !== 0) context.skip("setpriv cannot start the command as another user")
  const run = (args: readonly string[]) =>
    machine.run(args, isRoot ? { command: ["setpriv", ...asOther, tackleCommand] } : {})

  for (const args of [
    ["session", "list"],
    ["session", "show"],
  ])
    expect(await run(args)).toMatchObject({ code: 0, stdout: expect.stringContaining("hi"), stderr: "" })
  for (const args of [
    ["run", "more"],
    ["run", "--continue", "more"],
  ]) {
    const refused = await run(args)
    expect(refused).toMatchObject({ code: 1, stdout: "" })
    expect(refused.stderr).toMatch(
      /^tackle: The database \S+ cannot be written \(EACCES\)\. .*TACKLE_DATA_DIR to a writable directory\.\n$/,
    )
  }
  const doctor = await run(["doctor"])
  expect(doctor.code).toBe(1)
  expect(doctor.stdout).toMatch(/^✗ data directory \S+ cannot be written\. .*TACKLE_DATA_DIR/m)
  expect(doctor.stderr.split("could not record a program").length).toBeLessThanOrEqual(2)
})
