import { expect, test } from "vitest"
import { callsOf, createMachine, endOf, runDoctor, until } from "./run-tackle.ts"

const files = {
  ".tackle/commands/team/show.md": "---\ndescription: Shows\nagent: reviewer\n---\nShow $1: !`cat a.txt`\n",
  ".tackle/agents/reviewer.md": "---\ndescription: Reviews\n---\nYou review changes.\n",
  ".claude/commands/ship.md": "---\nallowed-tools: Bash(touch:*)\nmodel: opus\n---\n!`touch shipped`\n",
  "a.txt": "alpha\n",
}
const script = [{ text: "Done." }]

/** The user message of the first request, as JSON. */
const prompted = ({ server }: Awaited<ReturnType<typeof createMachine>>) =>
  JSON.stringify(server.requests[0]?.body.messages.at(-1))

test("runs a command by its name with the agent that it names", async () => {
  const machine = await createMachine({ files, script })
  const run = await machine.run(["run", "--trust", "--format", "json", "/team:show it"])
  expect(endOf(run)).toMatchObject({ exitCode: 0, text: "Done." })
  expect(prompted(machine)).toContain("Show it: alpha")
  expect(callsOf(run)).toEqual([["bash", "completed", expect.stringContaining("alpha")]])
  expect(JSON.stringify(machine.server.requests[0]?.body.messages[0])).toContain("You review changes.")
})

test("refuses shell lines of a command like any other, whatever its file allows", async () => {
  const machine = await createMachine({ files, script })
  const run = await machine.run(["run", "--trust", "/ship"])
  expect(run).toMatchObject({ code: 3, stdout: "Done.\n" })
  expect(run.stderr).toContain("touch shipped")
  expect(prompted(machine)).toContain("(This call failed: Refused:")
})

test("names the agent of a command in the first line", async () => {
  const machine = await createMachine({ files, script })
  const run = await machine.run(["run", "--trust", "/team:show it"])
  expect(run.stderr).toMatch(/^session ses_\w+ · reviewer · test\/m$/m)
})

test("sends a command of an untrusted project as plain text", async () => {
  const machine = await createMachine({ git: true, files, script })
  const run = await machine.run(["run", "/ship"])
  expect(run.stderr).toMatch(/not trusted.*\.claude\/commands\/ship\.md/)
  expect(prompted(machine)).toContain('"/ship"')
})

test("sends text that is not a command unchanged, and suggests a near name", async () => {
  const machine = await createMachine({ files, script: [...script, ...script] })
  const near = await machine.run(["run", "--trust", "/shop it"])
  expect(near).toMatchObject({ code: 0, stderr: expect.stringContaining("Did you mean /ship?") })
  expect(prompted(machine)).toContain("/shop it")
  expect((await machine.run(["run", "--trust", "/etc/hosts is wrong"])).stderr).not.toContain("did you mean")
})

test("lists commands in doctor, and reports that a list of tools allows nothing", async () => {
  const machine = await createMachine({ files })
  const { stdout } = await runDoctor(machine, "--trust")
  expect(stdout).toMatch(
    /! commands .*\.claude\/commands\/ship\.md, \.tackle\/commands\/team\/show\.md.*allowed-tools/,
  )
})

test("continues the session with its previous agent after kill -9 in the prompt of a command", async () => {
  const machine = await createMachine({
    files: { ".tackle/commands/think.md": "---\nagent: plan\n---\nThink.\n" },
    script: [{ fault: "hang" }, { text: "Done." }],
  })
  const started = machine.start(["run", "--trust", "/think"])
  await until("the model was asked", () => machine.server.requests.length === 1)
  started.child.kill("SIGKILL")
  await started.ended
  const shown = async () => JSON.parse((await machine.run(["session", "show", "--format", "json"])).stdout)
  expect((await shown()).session.agent).toBe("build")
  expect(await machine.run(["run", "-c", "go"])).toMatchObject({ code: 0, stdout: "Done.\n" })
  const { session, messages } = await shown()
  expect(session).toMatchObject({ agent: "build" })
  expect(session.lent).toBeUndefined()
  const users = messages.filter(({ message }: { message: { role: string } }) => message.role === "user")
  expect(users.map(({ message }: { message: { agent: string } }) => message.agent)).toEqual(["plan", "build"])
})
