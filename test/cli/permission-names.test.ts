import { expect, test } from "vitest"
import { knownPermissions } from "../../src/permission/permission-names.ts"
import { permissionOf } from "../../src/registry/registered-tool.ts"
import { createMachine } from "./run-tackle.ts"

test("reports a misspelt permission in the rules with its location and a suggestion", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/reads.js": "export default { description: 'd', args: {}, execute: async () => '' }\n",
      "tackle.json": JSON.stringify(
        {
          permission: {
            bsh: "deny",
            write: "ask",
            "web*": "ask",
            reads: "allow",
            reads_all: "allow",
            gitlab_read: "ask",
            edti_file: "allow",
            mcp_samplin: "ask",
          },
          agent: { build: { permission: { raed: "ask" } } },
          mcp: { edti: { type: "local", command: ["true"], enabled: false } },
        },
        null,
        1,
      ),
    },
  })
  const run = await machine.run(["tool", "list", "--trust"])
  const told = run.stderr.split("\n").filter((line) => line.includes("Did you mean"))
  expect(told).toEqual([
    expect.stringMatching(/tackle\.json:3: the rule for "bsh" .*Did you mean "bash"\?$/),
    expect.stringMatching(/tackle\.json:10: the rule for "mcp_samplin" .*Did you mean "mcp_sampling"\?$/),
    expect.stringMatching(/tackle\.json:15: the rule for "raed" .*Did you mean "read"\?$/),
  ])
  const check = (name: string) => machine.run(["permission", "check", name, "x", "--trust"])
  expect(await check("raed")).toMatchObject({
    code: 10,
    stderr: expect.stringContaining('No built-in tool requests the permission "raed"'),
  })
  for (const name of ["read", "write", "reads_all", "edti_file", "frobnicate"])
    expect((await check(name)).stderr).not.toContain("is asked for by")
})

test("rejects a misspelt permission in --allow and --deny, unless a tool has that name", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/reads.js": "export default { description: 'd', args: {}, execute: async () => '' }\n",
      ".tackle/plugin/own.js":
        "export default async () => ({ tool: { grepp: { description: 'd', args: {}, execute: async () => '' } } })\n",
    },
  })
  const call = ["tool", "call", "list", "{}"]
  const cases = [
    ["gerp", "run", "go", "--allow"],
    ["bsh:git *", "run", "go", "--deny"],
    ["gerp", ...call, "--allow"],
    ["Bash:git *", ...call, "--deny"],
    ["Bash(git *)", ...call, "--allow"],
    ["git status", ...call, "--deny"],
    ["raed:*", ...call, "--allow"],
    ["web_fetch", ...call, "--deny"],
  ]
  await Promise.all(
    cases.map(async ([rule = "", ...command]) => {
      const { code, stderr } = await machine.run([...command, rule])
      expect({ command, rule, code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(command.at(-1) ?? ""),
      })
    }),
  )
  expect(machine.server.requests).toEqual([])
  const names = ["reads", "grepp", "bash:git *", "frobnicate", "web*"].flatMap((rule) => ["--allow", rule])
  const { code, stderr } = await machine.run([...call, "--trust", ...names])
  expect(code, stderr).toBe(0)
})

test("reports no built-in tool as a misspelling", async () => {
  const machine = await createMachine()
  const { stdout } = await machine.run(["tool", "list", "--all", "--format", "json"])
  const ids: string[] = JSON.parse(stdout).tools.map(({ id }: { id: string }) => id)
  expect(ids.map(permissionOf).filter((name) => !knownPermissions.includes(name))).toEqual([])
})
