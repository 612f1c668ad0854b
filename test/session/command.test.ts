import { expect, onTestFinished, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import { findCommand } from "../../src/session/command.ts"
import type { RecordedRequest, Script } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { type Engine, startEngine } from "./engine.ts"
import { run, toolParts } from "./run.ts"

/** Runs the text as the command that it names. */
async function runCommand(engine: Engine, text: string, more: Parameters<typeof run>[1] = {}) {
  const found = findCommand(text, engine.tackle.commands())
  if (!("call" in found)) throw new Error(`${text} is no command`)
  return run(engine, { text, command: found.call, ...more })
}

const start = (script: Script, commands: TackleOptions["commands"], more: Partial<TackleOptions> = {}) =>
  startEngine(script, { files: { "a.txt": "alpha\n", "b.txt": "beta\n" }, commands: commands ?? {}, ...more })

/** Returns all texts of the user's last message in a request. */
const prompted = (request: RecordedRequest | undefined) =>
  JSON.stringify(request?.body.messages.findLast(({ role }) => role === "user"))

test("sends the template with arguments, output of its lines and mentioned files", async () => {
  const template = "Look at @$1 with !`echo @b.txt` in mind: $ARGUMENTS"
  await using engine = await start([{ text: "Done." }], { look: { template } }, { permission: "allow" })
  const { session, end } = await runCommand(engine, "/look a.txt closely")
  expect(end).toMatchObject({ status: "completed", text: "Done.", refused: [] })
  const said = prompted(engine.server.requests[0])
  expect(said).toMatch(/Look at @a\.txt closely with @b\.txt in mind: a\.txt closely/)
  expect(said).not.toContain("beta")

  // The line that ran is stored as a call, on the user's message.
  const [part] = await toolParts(session)
  expect(part).toMatchObject({
    tool: "bash",
    state: { status: "completed", input: { command: "echo @b.txt" } },
  })
  const [message] = await session.messages()
  expect(part?.messageID).toBe(message?.message.id)
  expect(message?.parts[0]).toMatchObject({ type: "text", text: "/look a.txt closely" })
})

test("attaches files that the template mentions, but none that a line printed", async () => {
  const commands = { one: { template: "See @a.txt and !`echo @b.txt`" } }
  await using engine = await start([{ text: "Done." }], commands, { permission: "allow" })
  await runCommand(engine, "/one")
  const said = prompted(engine.server.requests[0])
  expect([said.includes("alpha"), said.includes("beta")]).toEqual([true, false])
})

test("requests permission for a line, and replaces a refused line by a note", async () => {
  const commands = { ship: { template: "State: !`touch shipped`. Continue." } }
  await using engine = await start([{ text: "Done." }], commands)
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(`${request.permission} ${request.patterns.join()}`)
    void request.reply("reject")
  })
  const { session, end } = await runCommand(engine, "/ship")
  expect(asked).toEqual([expect.stringContaining("shipped")])
  expect(end).toMatchObject({ status: "completed", exitCode: 3, refused: [expect.anything()] })
  expect((await toolParts(session))[0]?.state.status).toBe("error")
  expect(prompted(engine.server.requests[0])).toMatch(/State: \(This call failed: .*\)\. Continue\./)
})

test("applies a command's agent and model to its prompt only", async () => {
  const script: Script = [{ text: "Planned." }, { text: "Built." }]
  await using engine = await start(script, {
    think: { template: "Think.", agent: "plan", model: "test/gpt-5" },
  })
  const { session } = await runCommand(engine, "/think")
  expect(session.info()).toMatchObject({ agent: "build" })
  expect(session.info().model).toBeUndefined()
  await run(engine, { session, text: "go" })
  expect(engine.server.requests.map(({ body }) => body.model)).toEqual(["gpt-5", "m"])
  const users = (await session.messages()).filter(({ message }) => message.role === "user")
  expect(users.map(({ message }) => message.agent)).toEqual(["plan", "build"])
})

test("applies the rules of the command's agent to its lines", async () => {
  const commands = { look: { template: "!`touch x`", agent: "mute" } }
  await using engine = await start([{ text: "Done." }], commands, {
    permission: "allow",
    agents: { mute: { tools: { bash: false } } },
  })
  const { session } = await runCommand(engine, "/look")
  expect((await toolParts(session)).map(({ state }) => state.status)).toEqual(["error"])
})

test("runs a subtask in a subagent, whose answer becomes the prompt", async () => {
  const script: Script = [{ text: "Found three." }, { text: "Three, it says." }]
  await using engine = await start(script, { find: { template: "Find $1.", agent: "explore" } })
  const { session, end } = await runCommand(engine, "/find bugs")
  expect(end.text).toBe("Three, it says.")
  expect(prompted(engine.server.requests[0])).toContain("Find bugs.")
  expect(prompted(engine.server.requests[1])).toContain("Found three.")
  expect(await engine.tackle.sessions.list({ parentID: session.id })).toMatchObject([{ agent: "explore" }])
  expect((await toolParts(session)).map(({ tool }) => tool)).toEqual(["task"])
})

test("fails for an unknown agent and leaves the session unchanged", async () => {
  await using engine = await start([{ text: "Done." }], { x: { template: "X", agent: "nobody" } })
  const { session, end } = await runCommand(engine, "/x")
  expect(end).toMatchObject({ status: "failed" })
  expect(session.info().agent).toBe("build")
})

test("loads a skill by its name, subject to the session's rules", async () => {
  const skill = (name: string) =>
    `---\nname: ${name}\ndescription: d\n---\nCosts $1 and !\`touch ran\`, see @b.txt.\n`
  const project = await temporaryProject({ "bake/SKILL.md": skill("bake"), "brew/SKILL.md": skill("brew") })
  onTestFinished(() => project.remove())
  await using engine = await start(
    [{ text: "Done." }, { text: "No." }],
    {},
    {
      skillFiles: [project.path("bake/SKILL.md"), project.path("brew/SKILL.md")],
      permission: { "*": "allow", skill: { brew: "deny" } },
    },
  )
  const { session } = await runCommand(engine, "/bake a cake of @a.txt")
  const said = prompted(engine.server.requests[0])
  expect(said).toContain("Costs $1 and !`touch ran`, see @b.txt.\\n\\na cake of @a.txt")
  // Only the user's own words can mention a file.
  expect(said).toContain("alpha")
  expect(said).not.toContain("beta")
  expect((await toolParts(session)).map(({ tool }) => tool)).toEqual(["skill"])

  const { end } = await runCommand(engine, "/brew")
  expect(end.refused).toMatchObject([{ tool: "skill" }])
  expect(prompted(engine.server.requests[1])).not.toContain("Costs")
})
