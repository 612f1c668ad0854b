import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { enabledSettings } from "../../src/config/enabled-settings.ts"
import type { Rule } from "../../src/schema/permission.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const brief = (rules: readonly Rule[] = []) =>
  rules.map(({ permission, pattern, action }) => `${permission} ${pattern} ${action}`)

const denySecrets = { action: "read", resource: "*.secret", effect: "deny" }

describe("OpenCode 2's rules", () => {
  test.each(["opencode.json", "opencode.jsonc", ".opencode/opencode.json", "tackle.json"])(
    "apply in %s, with file and line",
    async (name) => {
      const file = place.write(
        `project/${name}`,
        `{ "permissions": [
  { "action": "shell", "resource": "git push *", "effect": "deny" },
  { "action": "subagent", "resource": "*", "effect": "ask" },
  ${JSON.stringify(denySecrets)} ] }`,
      )
      const { permission } = await place.load()
      expect(brief(permission.project)).toEqual(["bash git push * deny", "task * ask", "read *.secret deny"])
      expect(permission.project[2]?.source).toEqual({ file, line: 4 })
    },
  )

  test("apply in the user's file and in an untrusted project", async () => {
    place.write("home/.config/opencode/opencode.json", { permissions: [denySecrets] })
    place.write("project/opencode.json", { permissions: [{ ...denySecrets, action: "edit" }] })
    const { permission } = await place.load({ trusted: false })
    expect(brief(permission.user)).toEqual(["read *.secret deny"])
    expect(brief(permission.untrusted)).toEqual(["edit *.secret deny"])
  })

  test("follow the rules of OpenCode 1 in the same file", async () => {
    place.write("project/opencode.json", {
      permissions: [denySecrets],
      permission: { "*": "allow", shell: { "rm *": "deny" } },
      tools: { write: false },
    })
    const { permission } = await place.load()
    expect(brief(permission.project)).toEqual([
      "edit * deny",
      "* * allow",
      "bash rm * deny",
      "read *.secret deny",
    ])
  })

  test("apply to agents in front matter, and in both versions' sections of a config file", async () => {
    place.write(
      "project/.opencode/agents/rev.md",
      '---\npermissions: [{action: edit, resource: "*", effect: deny}]\n---\nReview.',
    )
    place.write("project/opencode.json", {
      agent: { a: { permission: { bash: "deny" }, tools: { patch: false }, maxSteps: 3 } },
      mode: { build: { tools: { write: false } } },
      agents: {
        a: { permissions: [denySecrets], system: "Be brief." },
        b: { disabled: true },
      },
    })
    const { config, projectAgentPermission: rules } = await place.load()
    expect(brief(rules.rev)).toEqual(["edit * deny"])
    expect(brief(rules.a)).toEqual(["edit * deny", "bash * deny", "read *.secret deny"])
    expect(brief(rules.build)).toEqual(["edit * deny"])
    expect(config.agent).toEqual({
      a: { tools: { patch: false }, steps: 3, prompt: "Be brief." },
      b: { disable: true },
      build: { tools: { write: false }, mode: "primary" },
      rev: { prompt: "Review." },
    })
  })
})

describe("OpenCode 2's other keys", () => {
  test("are joined with those of OpenCode 1", async () => {
    place.write("project/opencode.json", {
      plugin: ["a", ["b", { x: 1 }]],
      plugins: ["c", { package: "d", options: { y: 2 } }, { package: "e" }],
      command: { one: { template: "1" } },
      commands: { two: { template: "2" } },
      mcp: {
        old: { type: "local", command: ["old"] },
        servers: { new: { type: "local", command: ["new"], disabled: true } },
      },
    })
    const { config, plugins } = await place.load()
    expect(plugins.map(({ spec, options }) => [spec, options])).toEqual([
      ["a", undefined],
      ["b", { x: 1 }],
      ["c", undefined],
      ["d", { y: 2 }],
      ["e", undefined],
    ])
    expect(Object.keys(config.command ?? {})).toEqual(["one", "two"])
    expect(config.mcp).toEqual({
      old: { type: "local", command: ["old"] },
      new: { type: "local", command: ["new"], enabled: false },
    })
  })

  test("are listed before the user trusts the file", async () => {
    const text = JSON.stringify({ permissions: [denySecrets], plugins: ["c"] })
    expect(await enabledSettings("/p/opencode.json", text)).toMatchObject([
      { key: "permission", value: "*.secret" },
      { key: "plugin", value: ["c"] },
    ])
  })
})

test.each<[string, object, RegExp]>([
  ["permissions that are no rules", { permissions: [{ allow: "x" }] }, /permissions\[0\]\.allow/],
  ["a rule without effect", { permissions: [{ action: "a", resource: "b" }] }, /permissions\[0\]\.effect/],
  ["a misspelled field", { permissions: [{ ...denySecrets, efect: "deny" }] }, /Did you mean "effect"/],
  ["permissions in a string", { permissions: "none" }, /permissions: expected/],
  ["a misspelled section", { permision: { bash: "deny" } }, /"permision"/],
  ["policies of providers", { experimental: { policies: [] } }, /"experimental\.policies"/],
  ["an unknown limit of an agent", { agents: { a: { deniedTools: ["bash"] } } }, /"agent\.a\.deniedTools"/],
  ["a list of tools", { tools: ["read"] }, /tools: expected an object/],
  [
    "a limit of a server",
    { mcp: { a: { type: "local", command: ["a"], disabledTools: ["b"] } } },
    /disabledTools/,
  ],
  [
    "an invalid switch of a server",
    { mcp: { a: { type: "local", command: ["a"], enabled: "no" } } },
    /mcp\.a\.enabled/,
  ],
])("stops at %s", async (_, content, message) => {
  place.write("project/opencode.json", content)
  const failure = await place.failure()
  expect(failure).toMatch(/opencode\.json:1:\d+: /)
  expect(failure).toMatch(message)
})

test.each([{ permissions: "none" }, { permision: { bash: "deny" } }])(
  "stops at %j in an untrusted project",
  async (content) => {
    place.write("project/opencode.json", content)
    expect(await place.failure({ trusted: false })).toMatch(/opencode\.json:1:\d+: /)
  },
)

test("only warns about keys that do not limit an agent", async () => {
  place.write("project/opencode.json", {
    theme: "dark",
    experimental: { continue_loop_on_deny: true },
    providers: {},
    agents: { a: { request: {} } },
  })
  expect((await place.load()).warnings).toEqual([
    "opencode.json: Tackle does not use theme, experimental.continue_loop_on_deny, providers, agent.a.request.",
  ])
})
