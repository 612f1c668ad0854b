import { cpSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, type Machine, type MachineOptions, runDoctor } from "./run-tackle.ts"

const fixtures = resolve(import.meta.dirname, "../fixtures")

test("runs a project made for OpenCode with its model, tools, server, plugin, skill, agents and texts", async () => {
  const machine = await openFixture("opencode-project", { config: null, script: opencodeScript })
  const env = { HOUSE_URL: machine.server.url, HOUSE_KEY: "house-secret" }
  const flags = ["--allow", "price", "--allow", "stock_count"]
  const run = await machine.run(["run", "--trust", ...flags, "go"], { env })
  // One of the calls is refused.
  expect(run).toMatchObject({ code: 3, stdout: "Done.\n" })

  const [first, second] = machine.server.requests
  expect(first?.body.model).toBe("coder")
  expect(first?.headers.authorization).toBe("Bearer house-secret")
  const system = JSON.stringify(first?.body.messages)
  expect(system).toContain("Prices are whole cents")
  expect(system).toContain("npm test")
  const offered = first?.body.tools ?? []
  const names = offered.map((entry) => entry.function.name)
  expect(names).toEqual(expect.arrayContaining(["price", "stock_count", "skill", "task", "edit"]))
  expect(names).not.toContain("webfetch")
  const describing = (name: string) =>
    offered.find((entry) => entry.function.name === name)?.function.description
  expect(describing("skill")).toContain("release-notes")
  expect(describing("task")).toContain("reviewer")
  expect(describing("task")).toContain("auditor")
  const results = second?.body.messages.filter(({ role }) => role === "tool").map(({ content }) => content)
  expect(results?.slice(0, 2)).toEqual(["119", "7 pieces of nuts"])
  expect(results?.[2]).toContain("are not for reading")
  expect(results?.[3]).toMatch(/rm \*|not allowed/i)

  const command = await machine.run(["run", "--trust", "/changed src"], { env })
  expect(command.code).toBe(0)
  const asked = machine.server.requests.at(-1)?.body.messages.at(-1)
  expect(JSON.stringify(asked)).toContain("Sum up what changed in src")
})

const opencodeScript: Reply[] = [
  {
    calls: [
      { name: "price", arguments: { net: 100 } },
      { name: "stock_count", arguments: { article: "nuts" } },
      { name: "read", arguments: { filePath: "service.env" } },
      { name: "bash", arguments: { command: "rm -r docs", description: "Remove" } },
    ],
  },
  { text: "Done." },
  { text: "Done." },
]

test("reports in doctor what it uses of .opencode and what it does not understand", async () => {
  const machine = await openFixture("opencode-project", { config: null })
  await machine.trust()
  const { stdout } = await runDoctor(machine)
  const taken = lineOf(stdout, "other programs")
  for (const what of ["opencode.json", "reviewer.md", "changed.md", "release-notes"])
    expect(taken).toContain(what)
  for (const key of ["theme", "autoupdate", "share"]) expect(taken).toContain(key)
})

test("runs a project made for Claude Code with its instructions, server, skill, agent and command", async () => {
  const script: Reply[] = [
    { calls: [{ name: "stock_count", arguments: { article: "nuts" } }] },
    { text: "Done." },
    { text: "Done." },
  ]
  const machine = await openFixture("claude-project", { script })
  const run = await machine.run(["run", "--trust", "--allow", "stock_count", "go"])
  expect(run).toMatchObject({ code: 0, stdout: "Done.\n" })
  const [first, second] = machine.server.requests
  expect(JSON.stringify(first?.body.messages)).toContain("Never commit to main")
  const describing = (name: string) =>
    first?.body.tools?.find((entry) => entry.function.name === name)?.function.description
  expect(describing("skill")).toContain("changelog")
  expect(describing("task")).toContain("test-writer")
  expect(second?.body.messages.at(-1)?.content).toBe("7 pieces of nuts")

  await machine.run(["run", "--trust", "/fix-issue 12"])
  expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages.at(-1))).toContain("Repair issue 12")
})

test("reports in doctor which files and settings of .claude are used and which are not", async () => {
  const machine = await openFixture("claude-project")
  await machine.trust()
  const { stdout } = await runDoctor(machine)
  const taken = lineOf(stdout, "other programs")
  for (const what of ["CLAUDE.md", ".mcp.json", "test-writer.md", "fix-issue.md", "changelog/SKILL.md"])
    expect(taken).toContain(what)
  expect(taken).toContain(
    "Not used: .claude/settings.json: permissions (allow with 3 entries; write rules under `permission` instead), " +
      "env (NODE_ENV), hooks (PostToolUse), enableAllProjectMcpServers",
  )
  expect(stdout).toMatch(/! agents .*test-writer\.md.*sonnet/)
})

test("enforces the rules of a project made for OpenCode 2", async () => {
  const write = { calls: [{ name: "write", arguments: { filePath: "a.txt", content: "x" } }] }
  const machine = await createMachine({
    files: {
      "opencode.json": JSON.stringify({
        permissions: [{ action: "read", resource: "*.secret", effect: "deny" }],
        keybinds: {},
      }),
      ".opencode/agents/rev.md":
        '---\npermissions: [{action: edit, resource: "*", effect: deny}]\n---\nReview.',
      ".opencode/agents/odd.md":
        "---\ndescription: Odd\npermissions: [{action: edit, effect: deny}]\n---\nReview.",
      ".opencode/agents/build.md": "---\npermissions: strict\n---\nBuild.",
    },
    script: [write, { text: "Done." }],
  })
  const check = await machine.run(["permission", "check", "read", "a.secret", "--trust", "--agent", "rev"])
  expect(check.stdout).toContain("deny")
  const run = (...flags: string[]) => machine.run(["run", "--trust", "--auto", ...flags, "go"])
  expect((await run("--agent", "rev")).code).toBe(3)
  await expect(machine.project.read("a.txt")).rejects.toThrow("ENOENT")

  const blocked = await run("--agent", "odd")
  expect(blocked).toMatchObject({ code: 2, stdout: "" })
  expect(blocked.stderr).toMatch(/"odd" cannot run.*odd\.md:3:15: agent\.odd\.permissions\[0\]\.resource/)
  expect((await run()).stderr).toMatch(/"build" cannot run.*build\.md:2:14: agent\.build\.permissions/)
  expect(machine.server.requests).toHaveLength(2)
  expect((await machine.run(["agent", "list", "--trust"])).stdout).toMatch(/odd .*cannot run/)

  await machine.trust()
  const { stdout } = await runDoctor(machine)
  expect(lineOf(stdout, "other programs")).toMatch(/rev\.md.*Tackle does not use keybinds/)
  expect(lineOf(stdout, "agents")).toMatch(/build\.md:2:14.*odd\.md:3:15/)
})

test("enforces the rules of a project made for Codex, and reports the rest in doctor", async () => {
  const machine = await createMachine({
    files: {
      "AGENTS.md": "Be brief.",
      ".codex/config.toml": 'model = "m"\n[mcp_servers.a]\ncommand = "a"\n',
      ".codex/rules/team.rules": 'prefix_rule(pattern = ["git", "push"], decision = "forbidden")\n',
      ".agents/skills/notes/SKILL.md": "---\nname: notes\ndescription: Notes\n---\nNote.",
    },
  })
  const check = await machine.run(["permission", "check", "bash", "git push origin", "--allow", "bash"])
  expect(check.stdout).toMatch(/deny.*team\.rules:1/s)
  await machine.trust()
  const line = lineOf((await runDoctor(machine)).stdout, "other programs")
  expect(line).toMatch(/\.codex: permissions \.codex\/rules\/team\.rules.*notes\/SKILL\.md/)
  expect(line).toContain("Not used: .codex/config.toml: model, mcp_servers")

  await machine.project.write(".codex/rules/team.rules", "forbid('git')\n")
  const run = await machine.run(["run", "go"])
  expect(run).toMatchObject({ code: 2, stdout: "" })
  expect(run.stderr).toMatch(/team\.rules:1:8: expected a name/)
})

async function openFixture(name: string, options: MachineOptions = {}): Promise<Machine> {
  const machine = await createMachine(options)
  cpSync(resolve(fixtures, name), machine.project.directory, { recursive: true })
  return machine
}

function lineOf(text: string, check: string): string {
  return text.split("\n").find((line) => line.slice(2).startsWith(check)) ?? ""
}
