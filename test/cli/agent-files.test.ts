import { expect, test } from "vitest"
import { callsOf, createMachine, runDoctor } from "./run-tackle.ts"

const bash = (command: string) => ({ name: "bash", arguments: { command, description: "do" } })

test("runs an agent of a trusted project with its prompt, model and tools", async () => {
  const machine = await createMachine({
    git: true,
    files: {
      ".tackle/agent/keeper.md":
        "---\ndescription: Keeps\ntools:\n  webfetch: false\npermission:\n  bash: allow\n---\nYou keep things.\n",
    },
    config: { permission: { bash: { "rm *": "deny" } } },
    script: [{ calls: [bash("node --version"), bash("rm made")] }, { text: "Kept." }],
  })
  const before = await machine.run(["run", "--agent", "keeper", "go"])
  expect(before).toMatchObject({ code: 2, stderr: expect.stringContaining("keeper") })
  expect(before.stderr).toMatch(/not trusted.*\.tackle\/agent\/keeper\.md/)

  const shown = await machine.run(["trust", "--list"])
  expect(shown.stdout).toContain('agent.keeper.prompt = "You keep things."')
  expect(shown.stdout).toContain("allow bash: *   (for the agent keeper)")
  await machine.trust()
  const run = await machine.run(["run", "--agent", "keeper", "--format", "json", "go"])
  // The agent's allow rule answers what would be asked, but cannot override a deny rule of the user.
  expect(callsOf(run).map(([tool, status]) => `${tool} ${status}`)).toEqual(["bash completed", "bash error"])
  const [request] = machine.server.requests
  expect(JSON.stringify(request?.body.messages[0])).toContain("You keep things.")
  const offered = request?.body.tools?.map((tool) => tool.function.name)
  expect(offered).toContain("bash")
  expect(offered).not.toContain("webfetch")

  await machine.project.write(".tackle/agent/keeper.md", "You do anything.")
  expect(await machine.run(["run", "--agent", "keeper", "go"])).toMatchObject({ code: 2 })
})

test("lists the agent files in use in config show and doctor, and unknown keys in doctor", async () => {
  const machine = await createMachine({
    files: {
      ".claude/agents/a.md": "---\nname: a\ncolor: red\ntools: Read, NotebookEdit\n---\nDo.\n",
      ".opencode/agent/b.md": "Do.",
    },
  })
  const shown = await machine.run(["config", "show", "--trust"])
  expect(shown.stdout).toMatch(/\.claude\/agents\/a\.md \(claude, project\)\n.*b\.md \(opencode, project\)/)
  expect(shown.stderr).toBe("")
  const { stdout } = await runDoctor(machine, "--trust", "--format", "json")
  const finding = JSON.parse(stdout).findings.find(({ check }: { check: string }) => check === "agents")
  expect(finding).toMatchObject({ status: "warn" })
  for (const part of [".claude/agents/a.md, .opencode/agent/b.md", "NotebookEdit", "agent.a.color"])
    expect(finding.detail).toContain(part)
})

test("stops at an error in a Tackle agent file and names its place", async () => {
  const machine = await createMachine({ files: { ".tackle/agent/a.md": "---\ntoolz: {}\n---\n" } })
  const run = await machine.run(["run", "--trust", "go"])
  expect(run).toMatchObject({ code: 2, stdout: "" })
  expect(run.stderr).toMatch(/\.tackle\/agent\/a\.md:2:1: unknown key "agent\.a\.toolz"/)
})
