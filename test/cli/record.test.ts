import { readFile, stat, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { callsOf, createMachine, endOf, eventsOf, type Machine, only } from "./run-tackle.ts"

const read = { name: "read", arguments: { filePath: "a.txt" } }
const write = { name: "write", arguments: { filePath: "b.txt", content: "new\n" } }
const bash = { name: "bash", arguments: { command: "echo $KEY_OF_SHOP", description: "Say it" } }
const secret = "sesame-open-42"

const script: Script = [
  { status: 503, text: "Not now." },
  { text: "I look.", calls: [read, write, bash], pieceSize: 3 },
  { text: `All done with ${secret}.` },
]

async function recorded(machine: Machine, ...args: string[]) {
  const file = join(machine.home, "run.jsonl")
  const env = { KEY_OF_SHOP: secret }
  const run = await machine.run(["run", "--record", file, "--format", "json", "--auto", ...args, "go"], {
    env,
  })
  return { file, run, lines: (await readFile(file, "utf8")).trimEnd().split("\n") }
}

function machineWith(given: Script) {
  return createMachine({
    files: { "a.txt": "kiwi\n" },
    script: given,
    config: { secrets: ["KEY_OF_SHOP"], retry: { maxAttempts: 2 } },
  })
}

/** The same machine with another directory, home and data directory, without a model server and the files. */
async function elsewhere() {
  const machine = await createMachine({ config: null })
  await machine.server.close()
  return machine
}

test("replays a recorded run elsewhere with the same calls and end, without a server or its files", async () => {
  const machine = await machineWith(script)
  const { file, run } = await recorded(machine)
  expect(endOf(run)).toMatchObject({ status: "completed" })
  expect(await machine.project.read("b.txt")).toBe("new\n")

  const other = await elsewhere()
  const again = await other.run(["run", "--replay", file, "--format", "json"])
  expect(again.stderr).toContain("the replay matches the recording: 3 requests, 3 calls.")
  expect(endOf(again)).toMatchObject({ exitCode: 0, text: "All done with [secret KEY_OF_SHOP]." })
  expect(callsOf(again).map(([tool, status]) => [tool, status])).toEqual(
    callsOf(run).map(([tool, status]) => [tool, status]),
  )
  const retries = only(eventsOf(again), "part.updated").filter(({ part }) => part.type === "retry")
  expect(retries).toMatchObject([{ part: { delayMs: 0 } }])
  await expect(stat(other.project.path("b.txt"))).rejects.toThrow("ENOENT")
})

test("marks the session of a replay, which --continue skips; a fork of it is unmarked", async () => {
  const machine = await machineWith([{ text: "One." }, { text: "Two." }])
  const { file, run } = await recorded(machine)
  const own = eventsOf(run)[0]?.sessionID
  await machine.run(["run", "--replay", file])
  const { stdout } = await machine.run(["session", "list"])
  expect(stdout.split("\n")[0]).toContain("(replay) ")
  expect(stdout.split("\n")[1]).not.toContain("(replay)")
  const goesOn = await machine.run(["run", "--continue", "--format", "json", "and now?"])
  expect(eventsOf(goesOn)[0]?.sessionID).toBe(own)
  const replay = /\bses_\w+/.exec(stdout)?.[0] ?? ""
  const fork = await machine.run(["session", "fork", replay])
  expect(fork.code).toBe(0)
  expect((await machine.run(["session", "list"])).stdout.match(/\(replay\)/g)).toHaveLength(1)
})

test("records no keys, headers or secrets, in a file that only the user can read", async () => {
  const machine = await machineWith(script)
  machine.env.TACKLE_CONFIG_CONTENT =
    machine.env.TACKLE_CONFIG_CONTENT?.replace('"k"', '"key-of-the-server"') ?? ""
  const { file, lines } = await recorded(machine)
  const text = lines.join("\n")
  for (const hidden of [
    secret,
    "key-of-the-server",
    "authorization",
    machine.project.directory,
    machine.home,
  ])
    expect(text.toLowerCase()).not.toContain(hidden.toLowerCase())
  expect(text).toContain("[secret KEY_OF_SHOP]")
  expect(lines.map((line) => JSON.parse(line).type)).toEqual([
    "run",
    ...["request", "response", "request", "response"],
    ...["tool", "tool", "tool"],
    ...["request", "response"],
  ])
  // The events of the stream, one by one.
  expect(JSON.parse(lines[4] ?? "").parts.length).toBeGreaterThan(10)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test("replaces an existing file completely, also its access for other users", async () => {
  const machine = await machineWith([{ text: "Done." }])
  const path = join(machine.home, "run.jsonl")
  await writeFile(path, "x".repeat(1_000_000), { mode: 0o644 })
  const { lines } = await recorded(machine)
  expect(lines.map((line) => JSON.parse(line).type)).toEqual(["run", "request", "response"])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test("names the first difference by its request and its place in the body, and exits with 1", async () => {
  const machine = await machineWith(script)
  const { file, lines } = await recorded(machine)
  const other = await elsewhere()
  // As if the call had returned something else.
  const request = lines.findLastIndex((line) => line.includes('"type":"request"'))
  const broken = lines.with(request, lines[request]?.replace("kiwi", "plum") ?? "")
  await writeFile(file, broken.join("\n"))
  const differs = await other.run(["run", "--replay", file])
  expect(differs.code).toBe(1)
  expect(differs.stderr).toMatch(
    /the replay differs from the recording\. Request 3 differs: messages\[\d\]\.content: expected .*plum.*, got .*kiwi/,
  )
})

test("reports a missing request, an extra request and a call without a record as differences", async () => {
  const machine = await machineWith(script)
  const { file, lines } = await recorded(machine)
  const other = await elsewhere()
  const replayed = async (kept: string[]) => {
    await writeFile(file, kept.join("\n"))
    const { code, stderr } = await other.run(["run", "--replay", file])
    return { code, stderr }
  }
  expect(await replayed(lines.slice(0, -2))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Request 3 is not in the recording"),
  })
  const more = lines.at(-2)?.replace('"number":3', '"number":4') ?? ""
  expect(await replayed([...lines, more])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Request 4 was not made"),
  })
  expect(await replayed(lines.filter((line) => !line.includes('"tool":"write"')))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The call write {"content":"new\\n","filePath":"b.txt"} is not'),
  })
})

test("records broken connections and refused calls, and repeats them in the replay", async () => {
  const machine = await machineWith([
    { text: "half of it", fault: "cut", pieceSize: 1 },
    { calls: [read, { name: "bash", arguments: { command: "rm -rf a.txt", description: "Remove" } }] },
    { text: "Well." },
  ])
  const { file, run } = await recorded(machine, "--deny", "bash:rm *")
  expect(run.code).toBe(3)
  const other = await elsewhere()
  const again = await other.run(["run", "--replay", file, "--format", "json"])
  expect(again.stderr).toContain("the replay matches the recording")
  expect(endOf(again)).toMatchObject({ exitCode: endOf(run).exitCode, text: "Well." })
  const { refused } = endOf(again)
  expect(refused.map(({ tool }) => tool)).toEqual(endOf(run).refused.map(({ tool }) => tool))
})

test("includes the requests of a subagent", async () => {
  const task = {
    name: "task",
    arguments: { description: "Look", prompt: "look around", subagent_type: "general" },
  }
  const machine = await machineWith(({ body }) => {
    const isChild = JSON.stringify(body.messages).includes("look around") && body.messages.length < 4
    const last = body.messages.at(-1)
    if (last?.role === "tool") return { text: "Seen." }
    return { calls: [isChild ? read : task] }
  })
  const { file, run } = await recorded(machine)
  expect(run.code).toBe(0)
  const again = await (await elsewhere()).run(["run", "--replay", file])
  expect(again.stderr).toContain("the replay matches the recording: 4 requests")
  expect(again.code).toBe(0)
})

/** A server of the protocol's authors, and one that only writes a mark. */
const everything = resolve(import.meta.dirname, "../../node_modules/.bin/mcp-server-everything")
const marker = (mark: string) => [
  process.execPath,
  "-e",
  `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "")`,
]

test("includes the offers of MCP servers and the files of the prompt, and replays without either", async () => {
  const echo = { name: "everything_echo", arguments: { message: "hello" } }
  const machine = await createMachine({
    files: { "a.txt": "kiwi\n" },
    script: [{ calls: [echo] }, { text: "Said." }],
    config: { mcp: { everything: { type: "local", command: [everything] } } },
  })
  const file = join(machine.home, "run.jsonl")
  const run = await machine.run(["run", "--record", file, "--auto", "say what @a.txt and @b.txt say"])
  expect(run).toMatchObject({ code: 0, stderr: expect.not.stringContaining("failed") })
  expect(await readFile(file, "utf8")).toMatch(/"tool":"everything_echo".*hello/)

  const other = await createMachine({ config: null, files: { "a.txt": "plum\n", "b.txt": "pear\n" } })
  await other.server.close()
  const mark = other.project.path("started.txt")
  const config = { mcp: { everything: { type: "local", command: marker(mark) } } }
  const again = await other.run(["run", "--replay", file], {
    env: { TACKLE_CONFIG_CONTENT: JSON.stringify(config) },
  })
  expect(again.stderr).toContain("the replay matches the recording: 2 requests, 1 call.")
  expect(again.code).toBe(0)
  await expect(stat(mark)).rejects.toThrow("ENOENT")
})

test("includes the prompt of an MCP server as the server completed it", async () => {
  const machine = await createMachine({
    script: [{ text: "Good." }],
    config: { mcp: { everything: { type: "local", command: [everything] } } },
  })
  const file = join(machine.home, "run.jsonl")
  const prompt = "/everything:args-prompt Oslo"
  expect(await machine.run(["run", "--record", file, prompt])).toMatchObject({ code: 0 })
  const again = await (await elsewhere()).run(["run", "--replay", file])
  expect(again.stderr).toContain("the replay matches the recording: 1 request, 0 calls.")
  expect(again.code).toBe(0)
})

test("rejects a recording that names files of this machine", async () => {
  const machine = await machineWith(script)
  const { file, lines } = await recorded(machine)
  const [run = "", ...rest] = lines
  const line = { ...JSON.parse(run), files: [{ mime: "text/plain", url: machine.project.path("a.txt") }] }
  await writeFile(file, [JSON.stringify(line), ...rest].join("\n"))
  const again = await (await elsewhere()).run(["run", "--replay", file])
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("files.0.url") })
})

test("runs no code from a recording", async () => {
  const machine = await machineWith(script)
  const { file, lines } = await recorded(machine)
  const [run = "", ...rest] = lines
  const line = JSON.parse(run)
  const other = await elsewhere()
  const mark = other.project.path("ran.txt")
  const code = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, "")`
  line.providers.test.npm = `data:text/javascript,${encodeURIComponent(code)}`
  await writeFile(file, [JSON.stringify(line), ...rest].join("\n"))
  const again = await other.run(["run", "--replay", file])
  expect(again.code).toBe(2)
  expect(again.stderr).toContain("uses the provider package")
  await expect(stat(mark)).rejects.toThrow("ENOENT")
})

test("rejects an invalid recording, and a message next to one, as usage errors", async () => {
  const machine = await machineWith(script)
  await machine.project.write("x.jsonl", '{"type":"run","version":2}')
  expect(await machine.run(["run", "--replay", "x.jsonl"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("x.jsonl:1 is not a valid recording line"),
  })
  expect(await machine.run(["run", "--replay", "none"])).toMatchObject({ code: 2 })
  expect(await machine.run(["run", "--replay", "x.jsonl", "go"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("recording already contains the message"),
  })
  expect(await machine.run(["run", "--record", "none/x", "go"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Cannot write the recording none/x"),
  })
})
