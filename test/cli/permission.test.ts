import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Explanation } from "../../src/permission/explain.ts"
import type { Grant } from "../../src/schema/permission.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import { describeSandboxed } from "../sandbox/support.ts"
import { createMachine, type Machine } from "./run-tackle.ts"

const rules = `{
  "permission": {
    "bash": {
      "*": "ask",
      "npm *": "allow",
      "rm *": "deny"
    }
  }
}`

describe("permission check", () => {
  test("returns the verdict as the exit code, and names the deciding rule with file and line", async () => {
    const machine = await createMachine({ config: null, files: { "tackle.json": rules } })
    await machine.trust()
    const check = (...args: string[]) => machine.run(["permission", "check", ...args])
    expect(await check("bash", "npm test")).toMatchObject({ code: 0, stderr: "" })
    expect((await check("bash", "make")).code).toBe(10)
    // A path outside, as the tool would ask for it.
    expect(await check("list", "/etc")).toMatchObject({
      code: 10,
      stdout: expect.stringContaining("external_directory"),
    })
    const denied = await check("bash", "npm test && r\\m x")
    expect(denied.code).toBe(11)
    expect(denied.stdout).toBe(
      [
        "deny",
        "  allow  bash: npm test",
        "         rule: allow bash: npm * (tackle.json:5)",
        "  deny   bash: rm x",
        "         rule: deny bash: rm * (tackle.json:6)",
        "  overruled:",
        "         ask *: * (defaults)",
        "         ask bash: * (tackle.json:4)",
        "",
      ].join("\n"),
    )
  })

  test("checks webfetch as a call does: the plain address and the private network that it resolves to", async () => {
    const machine = await createMachine({ config: null })
    const check = (url: string, ...flags: string[]) =>
      machine.run(["permission", "check", "webfetch", url, ...flags])
    const open = ["--allow", "webfetch"]
    expect(await check("http://127.0.0.1:8080", ...open)).toMatchObject({
      code: 11,
      stderr: "",
      stdout: [
        "deny",
        "  allow  webfetch: http://127.0.0.1:8080/",
        "         rule: allow webfetch: * (--allow)",
        "  deny   private_network: 127.0.0.1",
        "         rule: deny private_network: * (defaults)",
        "  overruled:",
        "         ask *: * (defaults)",
        "",
      ].join("\n"),
    })
    expect((await check("http://127.0.0.1", ...open, "--allow", "private_network:127.0.0.1")).code).toBe(0)
    const json = await check("http://[::1]/", ...open, "--format", "json")
    expect(JSON.parse(json.stdout)).toMatchObject({
      verdict: "deny",
      rule: { permission: "private_network" },
      commands: [{ pattern: "http://[::1]/" }, { pattern: "::1" }],
    })
    // A denied address is not resolved, and a pattern of rules has no host.
    expect((await check("http://127.0.0.1/", "--deny", "webfetch")).stdout).not.toContain("private_network")
    expect((await check("http://localhost/*", ...open)).code).toBe(0)
    expect((await check("http://8.8.8.8/", ...open)).code).toBe(0)
  })

  test("reports a host that cannot be resolved, and still decides the address", async () => {
    const machine = await createMachine({ config: null })
    const flags = ["--allow", "webfetch"]
    const { code, stderr } = await machine.run([
      "permission",
      "check",
      "webfetch",
      "http://a.invalid/",
      ...flags,
    ])
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("cannot determine whether a.invalid is in a private network"),
    })
  })

  test("lists in JSON the commands, their rules and the overruled rules", async () => {
    const machine = await createMachine({ config: null, files: { "tackle.json": rules } })
    await machine.trust()
    const { stdout, code } = await machine.run(["permission", "check", "bash", "npm test; rm x", "--json"])
    const other = await machine.run(["permission", "check", "bash", "npm test; rm x", "--format", "json"])
    expect(other).toMatchObject({ stdout, code })
    expect(code).toBe(11)
    const explanation = JSON.parse(stdout) as Explanation
    const source = machine.project.path("tackle.json")
    expect(explanation).toMatchObject({
      verdict: "deny",
      commands: [
        {
          argv: ["npm", "test"],
          pattern: "npm test",
          verdict: "allow",
          rule: { permission: "bash", pattern: "npm *", action: "allow", source, line: 5 },
        },
        { argv: ["rm", "x"], verdict: "deny", rule: { pattern: "rm *", action: "deny", source, line: 6 } },
      ],
    })
    expect(explanation.shadowed).toContainEqual({
      permission: "bash",
      pattern: "*",
      action: "ask",
      source,
      line: 4,
    })
  })

  test("reports lines of TOML and of JSON with comments", async () => {
    const machine = await createMachine({
      config: null,
      files: {
        "tackle.jsonc": '// rules\n{ "permission": { "bash": {\n  "make *": "deny" } } }',
        "tackle.toml": '[permission.bash]\n"ninja *" = "deny"\n',
      },
    })
    const where = async (command: string) => {
      const { stdout } = await machine.run(["permission", "check", "bash", command, "--json"])
      const { rule } = JSON.parse(stdout) as Explanation
      return `${rule?.source.slice(machine.project.directory.length)}:${rule?.line}`
    }
    expect(await where("make x")).toBe("/tackle.jsonc:3")
    expect(await where("ninja x")).toBe("/tackle.toml:2")
  })

  test("applies flags and agents, and rejects an unknown agent", async () => {
    const machine = await createMachine({ config: null })
    const check = (...args: string[]) => machine.run(["permission", "check", "edit", "a.ts", ...args])
    expect((await check("--allow", "edit:a.ts")).stdout).toContain("(--allow)")
    const plan = await check("--agent", "plan", "--allow", "edit")
    expect(plan).toMatchObject({ code: 11, stdout: expect.stringContaining("(built-in agent plan)") })
    expect((await check("--agent", "nobody")).code).toBe(2)
    expect((await machine.run(["permission", "check", "edit"])).code).toBe(2)
  })
})

test.each([
  ["a config file", "tackle.json"],
  ["an agent in Markdown", ".tackle/agent/build.md"],
])("lets a trusted project's agent in %s lift an ask but not a deny", async (_, where) => {
  const rules = { permission: { "*": "allow" } }
  const files: Record<string, string> =
    where === "tackle.json"
      ? { "tackle.json": JSON.stringify({ agent: { build: rules, plan: rules } }) }
      : Object.fromEntries(
          ["build", "plan"].map((name) => [
            `.tackle/agent/${name}.md`,
            `---\n${JSON.stringify(rules)}\n---\n`,
          ]),
        )
  const machine = await createMachine({
    config: null,
    files: { ...files, "opencode.json": '{ "permission": { "bash": { "npm *": "deny" } } }' },
  })
  const own = {
    permission: { bash: { "rm *": "deny" } },
    agent: { build: { permission: { bash: { "git push *": "deny" } } } },
  }
  await mkdir(join(machine.home, "config/tackle"), { recursive: true })
  await writeFile(join(machine.home, "config/tackle/tackle.json"), JSON.stringify(own))
  const verdict = async (agent: string, ...call: string[]) => {
    const args = ["permission", "check", ...call, "--trust", "--agent", agent]
    return (await machine.run(args)).stdout.split("\n")[0]
  }
  for (const command of ["rm x", "git push origin", "npm publish"])
    expect([command, await verdict("build", "bash", command)]).toEqual([command, "deny"])
  expect(await verdict("build", "bash", "make")).toBe("allow")
  expect(await verdict("plan", "edit", "a.ts")).toBe("deny")
})

test("prefers the agent rules of the environment to those of a project", async () => {
  const agent = (action: string) => JSON.stringify({ agent: { build: { permission: { bash: action } } } })
  const machine = await createMachine({
    config: null,
    files: { "tackle.json": agent("allow") },
  })
  const { stdout } = await machine.run(["permission", "check", "bash", "make", "--trust"], {
    env: { TACKLE_CONFIG_CONTENT: agent("ask") },
  })
  expect(stdout).toMatch(/^ask\n/)
})

describe("permission test", () => {
  test("tests the rules that apply in the directory", async () => {
    const cases = [
      { rules: "effective", permission: "bash", pattern: "npm test", expect: "allow" },
      { rules: "effective", permission: "bash", pattern: "npm publish", expect: "deny" },
      { rules: {}, permission: "bash", pattern: "npm test", expect: "ask" },
    ]
    const machine = await createMachine({
      files: {
        "tackle.json": '{ "permission": { "bash": { "npm publish": "deny" } } }',
        "c.jsonl": cases.map((entry) => JSON.stringify(entry)).join("\n"),
        "bad.jsonl": JSON.stringify({ ...cases[0], cwd: "/w" }),
      },
      config: { permission: { bash: { "npm test": "allow" } } },
    })
    expect(await machine.run(["permission", "test", "c.jsonl"])).toMatchObject({
      code: 0,
      stdout: "3 passed, 0 failed\n",
    })
    const bad = await machine.run(["permission", "test", "bad.jsonl"])
    expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('"cwd" cannot be combined') })
    await machine.project.write("c.jsonl", JSON.stringify({ ...cases[0], expect: "deny" }))
    const failed = await machine.run(["permission", "test", "c.jsonl"])
    expect(failed.code).toBe(1)
    expect(failed.stdout).toContain("c.jsonl:1: expected deny, got allow: bash")
  })

  const line = (change: Record<string, unknown>) =>
    JSON.stringify({
      rules: { bash: { "rm *": "deny" } },
      permission: "bash",
      pattern: "rm x",
      expect: "deny",
      cwd: "/w",
      ...change,
    })

  test("counts the cases, explains failures, and exits with 1 when any case fails", async () => {
    const machine = await createMachine({
      config: null,
      files: {
        "good.jsonl": `${line({})}\n\n${line({ expect: "!allow" })}\n`,
        "bad.jsonl": `${line({})}\n${line({ expect: "allow", note: "wishful" })}\n`,
      },
    })
    expect(await machine.run(["permission", "test", "good.jsonl"])).toMatchObject({
      code: 0,
      stdout: "2 passed, 0 failed\n",
      stderr: "",
    })
    const bad = await machine.run(["permission", "test", "bad.jsonl"])
    expect(bad.code).toBe(1)
    expect(bad.stdout).toContain('bad.jsonl:2: expected allow, got deny: bash "rm x" (wishful)\n')
    expect(bad.stdout).toContain("rule: deny bash: rm * (bad.jsonl:2)")
    expect(bad.stdout.endsWith("\n1 passed, 1 failed\n")).toBe(true)
  })

  test("reports invalid lines and missing files as usage errors", async () => {
    const machine = await createMachine({ config: null, files: { "c.jsonl": `${line({})}\n{"rules":1}\n` } })
    const bad = await machine.run(["permission", "test", "c.jsonl"])
    expect(bad).toMatchObject({ code: 2, stdout: "" })
    expect(bad.stderr).toContain("c.jsonl:2:")
    expect((await machine.run(["permission", "test", "none.jsonl"])).code).toBe(2)
  })

  test("ignores a broken config and a project without trust", async () => {
    const machine = await createMachine({ config: null, files: { "tackle.json": "{", "c.jsonl": line({}) } })
    expect((await machine.run(["permission", "test", "c.jsonl"])).code).toBe(0)
  })
})

describe("grants", () => {
  async function grant(machine: Machine, pattern: string, worktree: string): Promise<string> {
    const id = `gra_${pattern}`
    const given: Grant = {
      id,
      scope: "project",
      worktree,
      permission: "bash",
      pattern: `${pattern} *`,
      action: "allow",
      time: { created: 1_795_000_000_000 },
    }
    const store = await openSqliteStore(join(machine.data, "tackle.db"))
    await store.commit([{ kind: "grant", grant: given }])
    await store.close()
    return id
  }

  test("are listed, applied and revoked", async () => {
    const machine = await createMachine({ config: null })
    const permission = (...args: string[]) => machine.run(["permission", ...args])
    expect((await permission("list")).stdout).toBe("This project has no grants.\n")
    const make = await grant(machine, "make", machine.project.directory)
    await grant(machine, "ninja", machine.project.directory)
    await grant(machine, "cargo", "/elsewhere")

    expect((await permission("list")).stdout).toBe(
      "gra_make  bash: make *  (project, 2026-11-18)\ngra_ninja  bash: ninja *  (project, 2026-11-18)\n",
    )
    expect(JSON.parse((await permission("list", "--format", "json")).stdout)).toMatchObject({
      grants: [{ id: make, pattern: "make *" }, { pattern: "ninja *" }],
    })
    const allowed = await permission("check", "bash", "make all")
    expect(allowed).toMatchObject({ code: 0, stdout: expect.stringContaining("(grant gra_make)") })
    expect((await permission("check", "bash", "cargo build")).code).toBe(10)

    expect(await permission("revoke", make, "gra_cargo")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Unknown grant "gra_cargo"'),
    })
    expect((await permission("check", "bash", "make all")).code).toBe(0)
    expect(await permission("revoke", make)).toMatchObject({ code: 0, stdout: "Revoked 1 grant.\n" })
    expect((await permission("check", "bash", "make all")).code).toBe(10)
    expect((await permission("revoke")).code).toBe(2)
    expect((await permission("revoke", "--all")).stdout).toBe("Revoked 1 grant.\n")
    expect((await permission("check", "bash", "ninja")).code).toBe(10)
  })
})

await describeSandboxed("permission check with a sandbox", () => {
  test("explains which commands need no question", async () => {
    const machine = await createMachine({ files: { ".env": "K=1\n" } })
    const setting = await createMachine({ config: { sandbox: { allow: "auto" } } })
    const [flag, configured, secret, shown] = await Promise.all([
      machine.run(["permission", "check", "--sandboxed", "bash", "make all"]),
      setting.run(["permission", "check", "bash", "make all"]),
      machine.run(["permission", "check", "--sandboxed", "bash", "cat .env"]),
      setting.run(["config", "show"]),
    ])
    for (const { stdout } of [flag, configured]) expect(stdout).toMatch(/^allow\n[\s\S]*sandbox\.allow/)
    expect(secret.stdout).toMatch(/^ask\n/)
    expect(shown.stdout).toContain('sandbox.allow is "auto"')
  })
})
