import { mkdir, rm, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { expect, test } from "vitest"
import type { RecordedRequest } from "../../src/testing/model-server.ts"
import { createMachine, type Machine } from "./run-tackle.ts"

/** The delay of a fast model: files are not checked more often between steps. */
const look = { calls: [{ name: "list", arguments: {} }], delayMs: 450 }

const skill = (name: string, text: string) =>
  `---\nname: ${name}\ndescription: Skill of ${name}.\n---\n${text}\n`
const agent = (text: string) => `---\ndescription: Agent that ${text}s.\nmode: subagent\n---\nDo ${text}.\n`

/** The verb of each agent and the name of each skill in the tool descriptions. */
function toldIn(request: RecordedRequest | undefined): string[] {
  const texts = (request?.body.tools ?? []).map((each) => each.function.description ?? "")
  return [...texts.join("\n").matchAll(/(?:Skill of|Agent that) (\w+)/g)].map(([, word = ""]) => word)
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

test("uses new, changed and removed agents and skills of the user from the next step on", async () => {
  const machine: Machine = await createMachine({
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      const own = `${machine.home}/config/tackle`
      if (index === 0) await write(`${own}/skill/one/SKILL.md`, skill("one", "First."))
      if (index === 1) {
        await write(`${own}/agent/helper.md`, agent("help"))
        return { calls: [{ name: "skill", arguments: { name: "one" } }], delayMs: 450 }
      }
      if (index === 2) {
        await write(`${own}/skill/one/SKILL.md`, skill("one", "Second."))
        await write(`${own}/agent/helper.md`, agent("repair"))
        return { calls: [{ name: "skill", arguments: { name: "one" } }], delayMs: 450 }
      }
      if (index === 3) await rm(`${own}/skill`, { recursive: true })
      return index < 4 ? look : { text: "Done." }
    },
  })
  const run = await machine.run(["run", "go"])
  expect(run).toMatchObject({ code: 0, stderr: expect.not.stringContaining("trust") })
  expect(machine.server.requests.map(toldIn)).toEqual([
    [],
    ["one"],
    ["helps", "one"],
    ["repairs", "one"],
    ["repairs"],
  ])
  const results = machine.server.requests.at(-1)?.body.messages.filter(({ role }) => role === "tool")
  expect(results?.at(1)?.content).toContain("First.")
  expect(results?.at(2)?.content).toContain("First.")
})

test("drops a changed skill, agent or command of the project, one line each, until it is trusted again", async () => {
  const machine: Machine = await createMachine({
    files: {
      ".tackle/skill/one/SKILL.md": skill("one", "First."),
      ".tackle/agent/helper.md": agent("help"),
      ".tackle/command/go.md": "Continue.",
    },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) {
        await machine.project.write(".tackle/skill/one/SKILL.md", skill("one", "Second."))
        await machine.project.write(".tackle/agent/helper.md", agent("repair"))
        await machine.project.write(".tackle/command/new.md", "New.")
      }
      if (index === 2) await machine.trust()
      return index < 4 ? look : { text: "Done." }
    },
  })
  await machine.trust()
  const run = await machine.start(["run", "/go"]).ended
  const told = machine.server.requests.map(toldIn)
  expect(told).toEqual([["helps", "one"], [], [], ["repairs", "one"], ["repairs", "one"]])
  const lines = run.stderr.split("\n").filter((line) => line.includes("tackle trust"))
  expect(lines).toEqual([
    expect.stringMatching(/helper\.md: it has changed and is not trusted, so the agent is unavailable/),
    expect.stringMatching(/new\.md: it is new and not trusted, so the command is unavailable/),
    expect.stringMatching(/SKILL\.md: it has changed and is not trusted, so the skill is unavailable/),
  ])
})

test("keeps the agent unchanged until the prompt ends, and drops the agent for the next prompt", async () => {
  const machine: Machine = await createMachine({
    files: {
      ".tackle/agent/worker.md": "---\nmode: primary\ntools:\n  bash: false\n---\nYou are the worker.\n",
    },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0)
        await machine.project.write(".tackle/agent/worker.md", "---\nmode: primary\n---\nYou are another.\n")
      return index < 2 ? look : { text: "Done." }
    },
  })
  await machine.trust()
  const run = await machine.run(["run", "--agent", "worker", "go"])
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("Done.") })
  for (const { body } of machine.server.requests) {
    expect(JSON.stringify(body.messages[0])).toContain("You are the worker.")
    expect((body.tools ?? []).map((each) => each.function.name)).not.toContain("bash")
  }
  const next = await machine.run(["run", "--continue", "again"])
  expect(next.stderr).toContain('Unknown agent "worker"')
})

test("reports a broken file of the user with its place, and keeps the last version until it is repaired", async () => {
  const machine: Machine = await createMachine({
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      const file = `${machine.home}/config/tackle/agent/helper.md`
      if (index === 0) await write(file, agent("help"))
      if (index === 1) await write(file, "---\nmode: [\n---\nNo.\n")
      if (index === 2) await write(file, agent("repair"))
      return index < 3 ? look : { text: "Done." }
    },
  })
  const run = await machine.run(["run", "go"])
  expect(machine.server.requests.map(toldIn)).toEqual([[], ["helps"], ["helps"], ["repairs"]])
  const lines = run.stderr.split("\n").filter((line) => line.includes("helper.md"))
  expect(lines).toEqual([expect.stringMatching(/helper\.md:\d/)])
})

test("reports a changed plugin once and uses it from the next start on", async () => {
  const plugin = (text: string) => `export default async () => ({ config: () => {} }) // ${text}\n`
  const machine: Machine = await createMachine({
    files: { ".tackle/plugin/a.mjs": plugin("one") },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) await machine.project.write(".tackle/plugin/a.mjs", plugin("another"))
      if (index === 1) await write(`${machine.home}/config/tackle/plugin/b.mjs`, plugin("two"))
      return index < 3 ? look : { text: "Done." }
    },
  })
  await machine.trust()
  const { stderr } = await machine.run(["run", "go"])
  expect(stderr.split("\n").filter((line) => line.includes("next start"))).toEqual([
    expect.stringMatching(/a\.mjs: it has changed/),
    expect.stringMatching(/b\.mjs: it is new/),
  ])
})
