import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { describe, expect, test } from "vitest"
import { markedEnvironment } from "../lsp/processes.ts"
import { startSignInServer } from "../mcp/client/authorization-server.ts"
import { createMachine } from "./run-tackle.ts"

const everything = {
  type: "local",
  command: [resolve(import.meta.dirname, "../../node_modules/.bin/mcp-server-everything")],
}
const gone = { type: "local", command: ["./no-such-server"] }

test("lists the tools and problems of the servers as text and as JSON", async () => {
  const machine = await createMachine({ config: { mcp: { everything, gone } } })
  const text = await machine.run(["mcp", "list"])
  // The command fails because a server is unavailable, like `doctor`.
  expect(text).toMatchObject({ code: 1, stderr: "" })
  expect(text.stdout).toMatch(/^everything {2}connected, \d+ tools\n {2}everything_echo {2}Echoes back/m)
  expect(text.stdout).toMatch(/^gone {2}failed\n {2}The MCP server gone is unavailable: .*no-such-server/m)
  const json = await machine.run(["mcp", "list", "--format", "json"])
  expect(json.code).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({
    servers: [
      { id: "everything", status: "connected" },
      { id: "gone", status: "failed", tools: [] },
    ],
  })
})

test("starts the servers of a project once it is trusted", async () => {
  const [command] = everything.command
  const machine = await createMachine({
    files: { ".mcp.json": JSON.stringify({ mcpServers: { everything: { command } } }) },
  })
  const before = await machine.run(["mcp", "list"])
  expect(before.stdout).toContain("If the project defines servers, trust the project")
  expect(before.stderr).toContain(".mcp.json: mcp")
  await machine.trust()
  expect((await machine.run(["mcp", "list"])).stdout).toContain("everything_echo")
  const call = ["tool", "call", "everything_get-sum", '{"a":1,"b":2}']
  expect(await machine.run([...call, "--allow", "everything_*"])).toMatchObject({
    code: 0,
    stdout: "The sum of 1 and 2 is 3.\n",
  })
  // No user can be asked.
  expect((await machine.run(call)).code).not.toBe(0)
})

describe("mcp add", () => {
  const command = everything.command[0] ?? ""

  test("writes a server into the project's config, which stays trusted", async () => {
    const machine = await createMachine()
    const added = await machine.run(["mcp", "add", "everything", "--env", "A=b=c", "--", command, "stdio"])
    expect(added).toMatchObject({ code: 0, stderr: "" })
    expect(added.stdout).not.toContain("trust")
    expect(JSON.parse(await readFile(machine.project.path("tackle.json"), "utf8"))).toEqual({
      mcp: { everything: { type: "local", command: [command, "stdio"], environment: { A: "b=c" } } },
    })
    const listed = await machine.run(["mcp", "list"])
    expect(listed).toMatchObject({ stdout: expect.stringMatching(/^everything {2}connected/), stderr: "" })
  })

  test("does not trust a config that was not trusted before", async () => {
    const machine = await createMachine({ files: { "tackle.json": '{ "permission": { "bash": "allow" } }' } })
    const added = await machine.run(["mcp", "add", "everything", "--", command, "stdio"])
    expect(added.stdout).toContain("To use the server, trust the project: tackle trust\n")
    expect((await machine.run(["mcp", "list"])).stderr).toContain("tackle.json: ")
    await machine.trust()
    const again = await machine.run(["mcp", "add", "second", "https://tickets.example.com/mcp"])
    expect(again.stdout).not.toContain("trust")
    expect((await machine.run(["trust", "--list", "--format", "json"])).stdout).toContain('"trusted":true')
  })

  test("keeps the existing content with its comments, and never replaces a server", async () => {
    const text = '{\n  // mine\n  "model": "a/b",\n  "mcp": { "old": { "enabled": false } },\n}\n'
    const machine = await createMachine({ files: { "tackle.jsonc": text } })
    await machine.run(["mcp", "add", "tickets", "https://tickets.example.com/mcp", "--header", "X-Team=docs"])
    const written = await readFile(machine.project.path("tackle.jsonc"), "utf8")
    expect(written.startsWith(text.slice(0, text.indexOf(" },\n}")))).toBe(true)
    expect(written).toContain('"url": "https://tickets.example.com/mcp"')
    expect(written).toContain('"X-Team": "docs"')
    const again = await machine.run(["mcp", "add", "old", "https://tickets.example.com/mcp"])
    expect(again.code).not.toBe(0)
    expect(again.stderr).toContain('already contains an MCP server "old"')
    expect(await readFile(machine.project.path("tackle.jsonc"), "utf8")).toBe(written)
  })

  test("leaves a file that it cannot parse unchanged", async () => {
    const machine = await createMachine({ files: { "tackle.json": '{ "mcp": ' } })
    expect((await machine.run(["mcp", "add", "x", "node", "--user"])).stderr).not.toBe("")
    expect((await machine.run(["mcp", "add", "x", "node"])).code).not.toBe(0)
    expect(await readFile(machine.project.path("tackle.json"), "utf8")).toBe('{ "mcp": ')
  })

  test("writes with --user into the existing file of the user, and prints what to add to a TOML file", async () => {
    const machine = await createMachine({ config: null })
    const directory = join(machine.home, "config", "tackle")
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, "tackle.jsonc"), "{\n  // mine\n}\n")
    expect((await machine.run(["mcp", "add", "x", "--user", "--", "node", "a"])).code).toBe(0)
    expect(await readdir(directory)).toEqual(["tackle.jsonc"])
    expect(await readFile(join(directory, "tackle.jsonc"), "utf8")).toBe(
      '{\n  // mine\n  "mcp": {\n    "x": {\n      "type": "local",\n      "command": ["node", "a"]\n    }\n  }\n}\n',
    )
    await rename(join(directory, "tackle.jsonc"), join(directory, "config.toml"))
    await writeFile(join(directory, "config.toml"), 'sandbox = "auto"\n')
    const toml = await machine.run(["mcp", "add", "x", "--user", "--", "node", "a"])
    expect(toml.code).toBe(2)
    expect(toml.stderr).toContain('[mcp.x]\n  type = "local"\n  command = [ "node", "a" ]\n')
    expect(await readdir(directory)).toEqual(["config.toml"])
  })

  test("creates the config file of the user with --user", async () => {
    const machine = await createMachine()
    const { stdout } = await machine.run(["mcp", "add", "everything", "--user", "--", command])
    const path = /^Added everything to (.*)\.$/m.exec(stdout)?.[1] ?? ""
    expect(path.startsWith(join(machine.home, "config"))).toBe(true)
    expect((await machine.run(["mcp", "list"])).stdout).toMatch(/^everything {2}connected/)
  })
})

test("reports a server that mcp auth cannot reach", async () => {
  const gone = { type: "remote", url: "http://127.0.0.1:9/mcp" }
  const machine = await createMachine({ config: { mcp: { gone } } })
  const { code, stderr } = await machine.run(["mcp", "auth", "gone"])
  expect(code).toBe(2)
  expect(stderr).toContain("Cannot sign in to gone:")
  expect(stderr).not.toContain("defect")
})

test("prints the sign-in page and waits for the user; mcp logout removes the stored sign-in", async () => {
  await using closed = await startSignInServer()
  const machine = await createMachine({
    config: { mcp: { closed: { type: "remote", url: closed.url }, everything } },
  })
  expect((await machine.run(["mcp", "list"])).stdout).toContain("To sign in: tackle mcp auth closed")
  const signing = machine.start(["mcp", "auth", "closed"])
  const page = await new Promise<string>((found) => {
    signing.child.stdout?.on("data", () => {
      const [address] = /http:\S+authorize\S+/.exec(signing.stdout) ?? []
      if (address !== undefined) found(address)
    })
  })
  await fetch(page)
  expect(await signing.ended).toMatchObject({ code: 0, stderr: "" })
  expect(signing.stdout).toContain("Signed in to closed.")
  expect((await machine.run(["mcp", "list"])).stdout).toMatch(/^closed {2}connected, 1 tool$/m)
  expect((await machine.run(["mcp", "logout", "closed"])).stdout).toContain("Signed out of closed")
  expect((await machine.run(["mcp", "list"])).stdout).toMatch(/^closed {2}failed$/m)
  expect((await machine.run(["mcp", "auth", "everything"])).stderr).toContain(
    "Only remote servers support signing in",
  )
  const unknown = (await machine.run(["mcp", "auth", "none"])).stderr
  expect(unknown).toContain("Enabled servers: closed, everything (a local program, without sign-in).")
  expect(unknown).toContain("tackle mcp add none https://")
})

test("ends the server that a killed command left running, with the next command", async () => {
  const script = resolve(import.meta.dirname, "../mcp/client/scripted-server.ts")
  const scripted = { type: "local", command: [process.execPath, script, "/dev/null"] }
  const machine = await createMachine({
    script: [{ calls: [{ name: "scripted_wait", arguments: {} }] }],
    config: { mcp: { scripted }, permission: { "scripted_*": "allow" } },
  })
  const { environment, running } = markedEnvironment()
  const env = { LANGUAGE_SERVER_TEST: environment.LANGUAGE_SERVER_TEST }
  const killed = machine.start(["run", "go"], { env })
  await expect.poll(() => machine.server.requests.length, { timeout: 20_000 }).toBe(1)
  await expect.poll(() => running().length, { timeout: 20_000 }).toBe(3)
  killed.child.kill("SIGKILL")
  await killed.ended
  // The server and its child process.
  expect(running()).toHaveLength(2)
  await machine.run(["tool", "call", "read", '{"filePath":"none"}'])
  expect(running()).toEqual([])
})

test("says that all configured servers are disabled", async () => {
  const config = { mcp: { off: { type: "local", command: ["false"], enabled: false } } }
  const machine = await createMachine({ config })
  expect(await machine.run(["mcp", "list"])).toMatchObject({
    code: 0,
    stdout: "All MCP servers are disabled.\n",
  })
})

test("rejects an address without http:// or https:// instead of taking it for a program", async () => {
  const machine = await createMachine()
  for (const word of ["tickets.example.com/mcp", "ws://127.0.0.1:1/mcp"]) {
    expect(await machine.run(["mcp", "add", "tickets", word])).toMatchObject({
      code: 2,
      stderr: `tackle: "${word}" is not a URL. A URL starts with https:// or http://. To add a program, start its path with ./ or /.\n`,
    })
  }
  expect(await machine.run(["mcp", "add", "tickets", "https://"])).toMatchObject({
    code: 2,
    stderr: 'tackle: "https://" is not a valid URL. Example: https://example.com/mcp\n',
  })
  expect(await machine.run(["mcp", "add", "own", "./bin/server.mjs"])).toMatchObject({ code: 0 })
})

test.each([
  [["--trust", "mcp", "list"], "tackle mcp list --trust"],
  [["mcp", "--dir", ".", "list"], "tackle mcp list --dir"],
])("reports where a flag before its command belongs: %j", async (words, hint) => {
  const machine = await createMachine()
  expect(await machine.run(words)).toMatchObject({ code: 2, stderr: expect.stringContaining(hint) })
})
