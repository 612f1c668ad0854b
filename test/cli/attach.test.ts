import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { callsOf, createMachine, endOf, eventsOf, type Machine, until } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

/** A model that runs a command if the user's last text is "work", and otherwise repeats the last text. */
const script: Script = ({ body: { messages } }) => {
  const last = messages.at(-1)
  const text = typeof last?.content === "string" ? last.content : JSON.stringify(last?.content)
  if (last?.role === "user" && text.includes("work"))
    return { calls: [{ name: "bash", arguments: { command: "touch made", description: "makes a file" } }] }
  return { text: last?.role === "user" ? `heard ${text}` : "done" }
}

/** Starts a server for the project of a machine. */
async function serve(machine: Machine): Promise<string> {
  return (await startServer(machine, "0")).url
}

async function startServer(machine: Machine, port: string) {
  const served = machine.start(["serve", "--port", port, "--format", "json"], { timeoutMs: 60_000 })
  await until("the server listens", () => served.stdout.includes("\n"))
  return { served, url: String(JSON.parse(served.stdout).url) }
}

test("names --verbose after an unexpected error only if the command has this flag", async () => {
  const machine = await createMachine()
  const broken = createServer((_, response) => response.end("null"))
  await new Promise<void>((listening) => broken.listen(0, "127.0.0.1", listening))
  onTestFinished(() => void broken.close())
  const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`
  const env = { TACKLE_SERVER_TOKEN: "token" }
  const attach = await machine.run(["attach", url], { env })
  expect(attach).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^tackle: this is a bug in Tackle\.$/m),
  })
  const run = await machine.run(["run", "--attach", url, "hi"], { env })
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("--verbose to see the stack trace.") })
})

test("`run --attach` runs a prompt on the server, and continues the session", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  const first = await machine.run(["run", "--attach", url, "hello"])
  expect(first).toMatchObject({ code: 0, stdout: "heard hello\n" })
  const [, hint = ""] = /^continue with: tackle (run .*) "…"$/m.exec(first.stderr) ?? []
  expect(hint).toMatch(new RegExp(`^run --attach ${url} -s ses_\\w+$`))
  const json = await machine.run([...hint.split(" "), "--json", "again"])
  expect(endOf(json)).toMatchObject({ status: "completed", text: "heard again" })
  const ids = new Set(eventsOf(json).map(({ sessionID }) => sessionID))
  const { sessions } = JSON.parse((await machine.run(["attach", url, "--json"])).stdout)
  expect(sessions).toMatchObject([{ id: [...ids][0], status: "idle", title: "hello" }])
  const fork = await machine.run(["run", "--attach", url, "-c", "--fork", "third"])
  expect(fork.stdout).toBe("heard third\n")
  expect(JSON.parse((await machine.run(["attach", url, "--json"])).stdout).sessions).toHaveLength(2)
  const { stdout } = await machine.run(["attach", url, "--limit", "1"])
  expect(stdout).toMatch(
    /^ses_\w+ .*\nThis list is limited to the newest 1 session\. Use --limit to list more\.\n/,
  )
})

test("`run --attach` refuses requests without a terminal, and allows them with --auto", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  const refused = await machine.run(["run", "--attach", url, "--json", "work"])
  expect(refused.code).toBe(3)
  expect(callsOf(refused)).toMatchObject([["bash", "error", expect.stringContaining("refused")]])
  const allowed = await machine.run(["run", "--attach", url, "--json", "--auto", "work"])
  expect(callsOf(allowed)).toMatchObject([["bash", "completed", expect.anything()]])
  expect(await machine.project.read("made")).toBe("")
})

test("`run --attach` shows subagents and answers their requests", async () => {
  const task = { description: "makes a file", prompt: "work", subagent_type: "general" }
  const machine = await createMachine({
    script: (request, index) => {
      const last = request.body.messages.at(-1)
      if (last?.role === "user" && JSON.stringify(last.content).includes("delegate"))
        return { calls: [{ name: "task", arguments: task }] }
      return typeof script === "function" ? script(request, index) : {}
    },
  })
  const url = await serve(machine)
  const run = await machine.run(["run", "--attach", url, "--json", "--auto", "delegate"])
  expect(run.code, run.stderr).toBe(0)
  const calls = callsOf(run)
  expect(calls.find(([tool]) => tool === "task")).toMatchObject(["task", "completed", expect.anything()])
  expect(calls.find(([tool]) => tool === "bash")).toMatchObject(["bash", "completed", expect.anything()])
  expect(await machine.project.read("made")).toBe("")
})

test("Ctrl+C of `run --attach` stops the run on the server", async () => {
  const machine = await createMachine({
    script: [{ text: "slow ".repeat(2_000), pieceSize: 5, pieceDelayMs: 10 }],
  })
  const url = await serve(machine)
  const running = machine.start(["run", "--attach", url, "--json", "hello"])
  await until("the text is streamed", () => running.stdout.includes("part.delta"))
  running.child.kill("SIGINT")
  const ended = await running.ended
  expect(ended.code).toBe(130)
  expect(endOf(ended)).toMatchObject({ status: "interrupted" })
})

test("`run --attach` reports that the server was restarted during the run", async () => {
  const machine = await createMachine({
    script: [{ text: "slow ".repeat(2_000), pieceSize: 5, pieceDelayMs: 10 }],
  })
  const { served, url } = await startServer(machine, "0")
  const running = machine.start(["run", "--attach", url, "--json", "hello"])
  await until("the text is streamed", () => running.stdout.includes("part.delta"))
  served.child.kill("SIGKILL")
  await served.ended
  await startServer(machine, new URL(url).port)
  const ended = await running.ended
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("restarted during the run") })
})

test("`attach` lists the sessions of a server", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  expect(await machine.run(["attach", url])).toMatchObject({ code: 0, stdout: "No sessions yet.\n" })
  await machine.run(["run", "--attach", url, "hello"])
  const { stdout } = await machine.run(["attach", url])
  expect(stdout).toMatch(/^ses_\w+ {2}.* idle +hello \[.+\]\n/)
  expect(stdout).toContain(`tackle attach ${url} -s`)
})

test("`attach -c` shows the last turn, and sends each line of stdin", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  await machine.run(["run", "--attach", url, "hello"])
  const attached = await machine.run(["attach", url, "-c"], { stdin: "first\n\nsecond\n" })
  expect(attached.code, attached.stderr).toBe(0)
  for (const text of ["heard hello", "second"]) expect(attached.stdout).toContain(text)
  const json = await machine.run(["attach", url, "-c", "--json"], { stdin: "third\n" })
  expect(json.stdout).toContain('"text":"heard third"')
})

test("`attach` follows a session that another client uses, until it is interrupted", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  await machine.run(["run", "--attach", url, "hello"])
  const attached = machine.start(["attach", url, "-c", "--json"], { stdin: { open: true } })
  await until("the client is attached", () => attached.stdout.includes("heard hello"))
  await machine.run(["run", "--attach", url, "-c", "from another"])
  await until("the event arrives", () => attached.stdout.includes('"text":"heard from another"'))
  attached.child.kill("SIGINT")
  expect(await attached.ended).toMatchObject({ code: 0 })
})

describe.skipIf(!hasTmux)("in a terminal (needs tmux)", () => {
  test("`attach` sends typed lines, asks for permission, and leaves with Ctrl+C", async () => {
    const machine = await createMachine({ script })
    const url = await serve(machine)
    await machine.run(["run", "--attach", url, "hello"])
    const terminal = await openTerminal(machine)
    await terminal.tackle("attach", url, "-c")
    await terminal.sees("heard hello")
    await terminal.type("work")
    await terminal.sees("Allow this?")
    await terminal.press("y")
    await terminal.sees("done")
    await terminal.type("typed after the question")
    await terminal.sees("heard typed after the question")
    await terminal.press("C-c")
    await terminal.sees("[exit 0]")
    expect(await machine.project.read("made")).toBe("")
  })

  test("`attach` asks for a permission that was requested before it started", async () => {
    const machine = await createMachine({ script })
    const url = await serve(machine)
    const { stdout } = await machine.run(["run", "--attach", url, "--json", "hello"])
    const id = JSON.parse(stdout.split("\n")[0] ?? "").sessionID
    const other = machine.start(["attach", url, "-s", id], { stdin: "work\n" })
    await until("the request waits", async () => {
      const { sessions } = JSON.parse((await machine.run(["attach", url, "--json"])).stdout)
      return sessions[0].status === "waiting"
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "--attach", url, "-s", id, "also this")
    await terminal.sees("Allow this?")
    await terminal.press("y")
    await terminal.sees("heard also this")
    await terminal.sees("[exit 0]")
    expect(await other.ended).toMatchObject({ code: 0 })
  })
})

test.each([
  [["run", "--attach", "nowhere", "hello"], 2, '"nowhere" is not the URL of a server'],
  [["attach", "http://127.0.0.1:1", "--token-file", "missing"], 2, "token file missing does not exist"],
  [["run", "--attach", "http://127.0.0.1:1", "--allow", "bash", "hello"], 2, "cannot be used with option"],
  [["run", "--attach", "http://127.0.0.1:1", "--fork", "hello"], 2, "--fork requires a session"],
])("reports incorrect usage: %j", async (args, code, text) => {
  const machine = await createMachine({ script })
  const run = await machine.run(args, { env: { TACKLE_SERVER_TOKEN: "x" } })
  expect(run.stderr).toContain(text)
  expect(run.code).toBe(code)
})

test("reports a wrong token and an unknown session", async () => {
  const machine = await createMachine({ script })
  const url = await serve(machine)
  const env = { TACKLE_SERVER_TOKEN: "wrong" }
  const stranger = await machine.run(["attach", url], { env })
  expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining("token is missing or wrong") })
  const lost = await machine.run(["run", "--attach", url, "-s", "ses_unknown", "hello"])
  expect(lost).toMatchObject({ code: 2, stderr: expect.stringContaining("no session ses_unknown") })
})
