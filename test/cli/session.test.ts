import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("lists, shows, exports and deletes sessions", async () => {
  const machine = await createMachine({
    files: { "a.txt": "seven\n" },
    script: [
      { text: "Reading.", calls: [{ name: "read", arguments: { filePath: "a.txt" } }] },
      { text: "Seven.\u001b[2J" },
      { text: "Hello." },
    ],
  })
  const empty = await machine.run(["session", "show"])
  expect(empty).toMatchObject({ code: 2, stderr: "tackle: This project has no sessions yet.\n" })
  const { code, stderr } = empty
  expect(await machine.run(["session", "export"])).toMatchObject({ code, stderr })
  await machine.run(["run", "what does a.txt say?"])
  await machine.run(["run", "hello"])
  const list = await machine.run(["session", "list"])
  expect(list.stdout).toMatch(
    /^ses_\w+ {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}hello\nses_\w+ .* {2}what does a\.txt say\?\n$/,
  )
  const hour = async (TZ: string) =>
    Number(/ (\d\d):/.exec((await machine.run(["session", "list"], { env: { TZ } })).stdout)?.[1])
  expect(await hour("Asia/Tokyo")).toBe(((await hour("UTC")) + 9) % 24)
  const [latest = "", first = ""] = list.stdout.match(/ses_\w+/g) ?? []

  const [elsewhere, everywhere, json, shown, shownJson, exported, last, unknown] = await Promise.all([
    machine.run(["session", "list", "--dir", machine.home]),
    machine.run(["session", "list", "--dir", machine.home, "--all"]),
    machine.run(["session", "list", "--format", "json"]),
    machine.run(["session", "show", first]),
    machine.run(["session", "show", "--format", "json"]),
    machine.run(["session", "export", first]),
    machine.run(["session", "export"]),
    machine.run(["session", "show", "ses_none"]),
  ])
  expect(elsewhere.stdout).toBe("No sessions yet.\n")
  expect(everywhere.stdout).toContain(`what does a.txt say? [${machine.project.directory}]`)
  expect(JSON.parse(json.stdout).sessions).toMatchObject([
    { id: latest },
    { id: first, title: "what does a.txt say?" },
  ])
  expect(shown.stdout).toMatch(/^> what does a\.txt say\?\n\nReading\.\n\n✓ read a\.txt · 1 line\n/m)
  // Stored text cannot move the cursor of the user's terminal.
  expect(shown.stdout).toContain("Seven.<U+001B>[2J")
  expect(JSON.parse(shownJson.stdout)).toMatchObject({ session: { id: latest }, messages: [{}, {}] })
  const { format, version, session, messages, todos } = JSON.parse(exported.stdout)
  expect({ format, version, id: session.id, todos }).toEqual({
    format: "tackle.session",
    version: 1,
    id: first,
    todos: [],
  })
  expect(JSON.parse(last.stdout)).toMatchObject({ session: { id: latest } })
  expect(messages.map(({ message }: { message: { role: string } }) => message.role)).toEqual([
    "user",
    "assistant",
    "assistant",
  ])
  expect(unknown).toMatchObject({ code: 2, stdout: "" })

  const deleted = await machine.run(["session", "delete", "ses_none", latest])
  expect(deleted).toMatchObject({
    code: 2,
    stdout: `Deleted ${latest}.\n`,
    stderr: expect.stringContaining("ses_none"),
  })
  expect((await machine.run(["session", "list"])).stdout.match(/ses_\w+/g)).toEqual([first])
})

test("lists at most as many sessions as --limit allows, and says when more exist", async () => {
  const machine = await createMachine({ script: [{ text: "One." }] })
  await machine.run(["run", "first"])
  await machine.run(["session", "fork"])
  await machine.run(["session", "fork"])
  const list = async (...flags: string[]) => (await machine.run(["session", "list", ...flags])).stdout
  const all = await list()
  expect(all).toMatch(/^(?:ses_.*\n){3}$/)
  expect(await list("--limit", "3")).toBe(all)
  const more = "This list is limited to the newest 2 sessions. Use --limit to list more."
  const [newest, second] = all.split("\n")
  expect(await list("--limit", "2")).toBe(`${newest}\n${second}\n${more}\n`)
  expect(await list("--limit", "2", "--search", "first")).toContain(more)
  expect(JSON.parse(await list("--limit", "2", "--json")).sessions).toHaveLength(2)
  expect((await machine.run(["session", "list", "--limit", "0"])).code).toBe(2)
})

test("forks a session, exports it and imports it again", async () => {
  const machine = await createMachine({
    script: [{ text: "One." }, { text: "Two." }, { text: "Three." }],
  })
  await machine.run(["run", "first"])
  const forked = await machine.run(["run", "-c", "--fork", "second"])
  expect(forked.code).toBe(0)
  const [fork = "", first = ""] = (await machine.run(["session", "list"])).stdout.match(/ses_\w+/g) ?? []
  expect((await machine.run(["session", "show", first])).stdout).not.toContain("second")
  expect((await machine.run(["session", "show", fork])).stdout).toMatch(
    /> first[\s\S]*One\.[\s\S]*> second[\s\S]*Two\./,
  )

  const { stdout: archive } = await machine.run(["session", "export", first])
  await machine.project.write("session.json", archive)
  const [known, nowhere, unknown, alone] = await Promise.all([
    machine.run(["session", "import", "session.json"]),
    machine.run(["session", "import", "nowhere.json"]),
    machine.run(["session", "fork", "--at", "msg_none", first]),
    machine.run(["run", "--fork", "x"]),
  ])
  expect(known).toMatchObject({ code: 2, stderr: expect.stringMatching(/already.*--copy/) })
  expect(nowhere).toMatchObject({
    code: 2,
    stderr: "tackle: Cannot read nowhere.json: no such file or directory.\n",
  })
  expect(unknown.stderr).toContain("no message msg_none")
  expect(alone).toMatchObject({ code: 2 })
  expect((await machine.run(["session", "import", "--copy", "session.json"])).stdout).toMatch(
    /^Imported as ses_\w+\./,
  )
  await machine.run(["session", "delete", first])
  expect((await machine.run(["session", "import", "session.json"])).stdout).toContain(`Imported as ${first}.`)
  expect((await machine.run(["run", "-s", first, "third"])).stdout).toContain("Three.")
  expect((await machine.run(["session", "export", "--sanitize", first])).stdout).not.toMatch(/first|One\./)
})
