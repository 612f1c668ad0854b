import { afterEach, beforeEach, expect, test } from "vitest"
import { checkRequest } from "../../src/permission/check.ts"
import { rulesFromObject } from "../../src/permission/rules.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

/** Returns the verdict on a request under the project's rules, where everything else is allowed. */
async function verdict(permission: string, pattern: string): Promise<string> {
  const { permission: loaded } = await place.load()
  const policy = {
    layers: [
      { name: "user" as const, rules: rulesFromObject("allow") },
      { name: "project" as const, rules: loaded.project },
      { name: "project" as const, rules: loaded.untrusted, tightenOnly: true },
      { name: "project" as const, rules: loaded.foreign, tightenOnly: true },
    ],
  }
  const { project, home } = place
  const scope = { directory: project, worktree: project, policy: () => policy, own: [] }
  return (await checkRequest({ permission, patterns: [pattern] }, scope, home)).action
}

const settings = (permissions: object) => place.write("project/.claude/settings.json", { permissions })

test.each([
  ["Bash(rm:*)", "bash", ["rm x", "rm", "rmdir x"], ["ls"]],
  ["Bash(npm run *)", "bash", ["npm run x", "npm run"], ["npm test"]],
  ["Bash(git push)", "bash", ["git push"], ["git push --force"]],
  ["Bash", "bash", ["ls"], []],
  ["Read(./.env)", "read", [".env"], ["a.txt"]],
  ["Read(.env)", "read", [".env", "deep/er/.env"], ["my.env"]],
  ["Read(secrets/**)", "read", ["secrets/a", "secrets/a/b"], ["secret/a"]],
  ["Read(/src/**/*.pem)", "read", ["src/a/b.pem", "src/b.pem"], ["b.pem"]],
  ["Read(//etc/passwd)", "read", ["/etc/passwd"], ["/etc/group"]],
  ["Read(~/.zshrc)", "read", ["~/.zshrc"], ["~/.bashrc"]],
  ["Edit(generated/)", "edit", ["generated/a.ts", "src/generated/a.ts"], ["a.ts"]],
  ["Write", "edit", ["a.ts"], []],
  ["WebFetch(domain:example.com)", "webfetch", ["https://example.com/a"], ["https://example.org/"]],
  ["mcp__stock", "stock_count", ["{}"], []],
  ["mcp__stock__count", "stock_count", ["{}"], []],
])("applies the deny %s", async (rule, permission, denied, allowed) => {
  settings({ allow: ["Bash(*)"], deny: [rule] })
  for (const pattern of denied)
    expect([pattern, await verdict(permission, pattern)]).toEqual([pattern, "deny"])
  for (const pattern of allowed)
    expect([pattern, await verdict(permission, pattern)]).not.toEqual([pattern, "deny"])
})

test("applies asks, and denies also if an ask covers them", async () => {
  settings({ deny: ["Bash(git push --force:*)"], ask: ["Bash(git push:*)"] })
  expect(await verdict("bash", "git push")).toBe("ask")
  expect(await verdict("bash", "git push --force")).toBe("deny")
  expect(await verdict("bash", "true")).toBe("allow")
})

test("only restricts the rules of the project's own files", async () => {
  settings({ allow: ["Bash(make:*)"], ask: ["Bash(make:*)"] })
  place.write("project/tackle.json", { permission: { bash: { "make *": "deny" } } })
  expect(await verdict("bash", "make x")).toBe("deny")
})

test("reads local settings and those of the user, and keeps the trust of the project", async () => {
  place.write("project/.claude/settings.local.json", { permissions: { deny: ["Bash(one)"] } })
  place.write("home/.claude/settings.json", { permissions: { deny: ["Bash(two)", "Read(/x)"] } })
  expect(await verdict("bash", "one")).toBe("deny")
  expect(await verdict("bash", "two")).toBe("deny")
  expect(await verdict("read", "~/.claude/../x")).toBe("deny")
  expect(await place.load({ trusted: false })).toMatchObject({ projectTrusted: true, warnings: [] })
})

test("keeps a deny if an ask in another file covers it", async () => {
  place.write("home/.claude/settings.json", { permissions: { deny: ["Bash(git push --force:*)"] } })
  settings({ ask: ["Bash(git:*)"] })
  expect(await verdict("bash", "git push --force")).toBe("deny")
})

test("lists what it does not use", async () => {
  settings({ allow: ["Read"], deny: ["Foo(x)", "Bash(x)"], defaultMode: "plan" })
  place.write("home/.claude/settings.json", { permissions: { ask: [] }, env: { A: "b" } })
  expect((await place.load()).unusedSettings).toEqual([
    "~/.claude/settings.json: env (A)",
    '.claude/settings.json: permissions (allow with 1 entry; write rules under `permission` instead, deny "Foo(x)", defaultMode)',
  ])
})

test("applies the limits of the sandbox and the list of disabled servers", async () => {
  place.write("project/.mcp.json", {
    mcpServers: { a: { command: "a" }, b: { command: "b", disabled: true } },
  })
  place.write("project/.claude/settings.json", {
    disabledMcpjsonServers: ["a"],
    sandbox: {
      enabled: true,
      filesystem: { denyRead: ["./keys", "/etc/keys"], denyWrite: ["~/notes"], allowWrite: ["/tmp"] },
      network: { deniedDomains: ["example.com"], allowedDomains: ["example.org"] },
    },
  })
  for (const [permission, pattern] of [
    ["read", "keys/a"],
    ["read", "/etc/keys"],
    ["edit", "~/notes/a"],
    ["network", "example.com"],
    ["webfetch", "https://example.com/a"],
  ] as const)
    expect([pattern, await verdict(permission, pattern)]).toEqual([pattern, "deny"])
  expect(await verdict("read", "a")).toBe("allow")
  const { config } = await place.load()
  expect(config.mcp).toEqual({ b: expect.objectContaining({ enabled: false }) })
})

test.each<[string, object | string, RegExp]>([
  ["a negated path", { permissions: { deny: ["Read(!a)"] } }, /permissions\.deny: .*"Read\(!a\)"/],
  ["a parameter", { permissions: { deny: ["Agent(model:opus)"] } }, /permissions\.deny/],
  ["a misspelled tool", { permissions: { deny: ["bahs(rm:*)"] } }, /permissions\.deny: .*bahs/],
  ["an unclosed rule", { permissions: { ask: ["Bash(rm"] } }, /permissions\.ask/],
  ["a rule that is not a string", { permissions: { deny: [7] } }, /permissions\.deny/],
  ["a single rule", { permissions: { deny: "Read" } }, /permissions\.deny/],
  ["a list of permissions", { permissions: ["Read"] }, /permissions: expected lists of rules/],
  ["an unknown list", { permissions: { denied: ["Read"] } }, /permissions\.denied/],
  ["an unknown limit", { deniedMcpServers: [{ serverName: "a" }] }, /deniedMcpServers/],
  [
    "an unknown limit of the sandbox",
    { sandbox: { network: { denyAll: true } } },
    /sandbox\.network\.denyAll/,
  ],
  ["invalid JSON", '{ "permissions": { "deny": ["Read(a)"] ', /closing bracket/],
])("stops at %s", async (_, content, message) => {
  place.write("project/.claude/settings.json", content)
  for (const trusted of [true, false]) {
    const failure = await place.failure({ trusted })
    expect(failure).toMatch(/\.claude\/settings\.json:1:\d+: /)
    expect(failure).toMatch(message)
  }
})

test("warns about hooks that could refuse a call", async () => {
  place.write("project/.claude/settings.json", { hooks: { PreToolUse: [], Stop: [] } })
  expect((await place.load()).warnings).toEqual([expect.stringMatching(/settings\.json:1:\d+: .*PreToolUse/)])
})

test.each<[object, string | undefined]>([
  [{ model: "anthropic/claude-sonnet-4-5" }, "anthropic/claude-sonnet-4-5"],
  [
    { model: "test/m", agent: { other: { model: "anthropic/claude-sonnet-4" } } },
    "anthropic/claude-sonnet-4",
  ],
  [
    {
      model: "b/claude-opus-4",
      provider: {
        a: { models: { "claude-sonnet-9": {} } },
        b: { models: { "claude-sonnet-4": {}, "claude-sonnet-10": {} } },
      },
    },
    "b/claude-sonnet-10",
  ],
  [{ model: "anthropic/claude-opus-4-5" }, undefined],
  [{}, undefined],
])("uses for an agent with the model sonnet under %j: %s", async (config, model) => {
  place.write("project/tackle.json", config)
  place.write("project/.claude/agents/a.md", "---\ndescription: A\nmodel: sonnet\n---\nBe brief.\n")
  const loaded = await place.load()
  expect(loaded.config.agent?.a?.model).toBe(model)
  expect(loaded.notes).toHaveLength(model === undefined ? 1 : 0)
  if (model === undefined) expect(loaded.notes[0]?.text).toMatch(/a\.md:3.*"sonnet"/)
})
