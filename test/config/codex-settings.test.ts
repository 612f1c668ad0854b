import { afterEach, beforeEach, expect, test } from "vitest"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

async function rules(): Promise<string[]> {
  const { permission } = await place.load({ trusted: false })
  const shown = (pattern: string) => pattern.replace(place.project, "<project>")
  return permission.foreign.map((rule) => `${rule.permission} ${shown(rule.pattern)} ${rule.action}`)
}

test("applies the prefixes that rules files forbid or ask about, with file and line", async () => {
  const file = place.write(
    "project/.codex/rules/team.rules",
    `# Rules of the team
prefix_rule(pattern = ["git", "push"], decision = "forbidden", justification = """Ask "a"
maintainer""")
prefix_rule(
    pattern = ['gh', ["pr", r"issue"], "create"],
    decision = "prompt",
    match = [["gh", "pr", "create"], "gh issue create"],  # examples
)
prefix_rule(pattern=["ls"])
network_rule(host = "example.com", protocol = "https", decision = "deny")
host_executable(name = "git", paths = ("/usr/bin/git",))
`,
  )
  expect(await rules()).toEqual([
    "bash gh pr create * ask",
    "bash gh issue create * ask",
    "bash git push * deny",
    "network example.com deny",
    "webfetch *://example.com deny",
    "webfetch *://example.com/* deny",
    "webfetch *://example.com:* deny",
  ])
  const { permission, unusedSettings } = await place.load()
  expect(permission.foreign[2]?.source).toEqual({ file, line: 2 })
  expect(unusedSettings).toEqual([".codex/rules/team.rules: rules that allow (2)"])
})

test("applies the user's rules, also from CODEX_HOME", async () => {
  const text = 'prefix_rule(pattern = ["rm"], decision = "forbidden")'
  place.write("home/.codex/rules/default.rules", text)
  expect(await rules()).toEqual(["bash rm * deny"])
  place.write("elsewhere/rules/default.rules", text.replace("rm", "mv"))
  const { permission } = await place.load({ environment: { CODEX_HOME: `${place.home}/../elsewhere` } })
  expect(permission.foreign.map(({ pattern }) => pattern)).toEqual(["mv *"])
})

test.each<[string, string, string[]]>([
  ["a read-only sandbox", 'sandbox_mode = "read-only"', ["edit * ask"]],
  [
    "a read-only sandbox without questions",
    'approval_policy = "never"\nsandbox_mode = "read-only"',
    ["edit * deny"],
  ],
  ["a sandbox that can write", 'sandbox_mode = "workspace-write"', []],
  ["a disabled web search", 'web_search = "disabled"', ["websearch * deny"]],
  ["a read-only profile", 'default_permissions = ":read-only"', ["edit * ask"]],
  [
    "the selected profile and those that it extends",
    `default_permissions = "strict"
[permissions.other.filesystem]
"/other" = "deny"
[permissions.base.network.domains]
"*.example.org" = "allow"
"example.com" = "deny"
[permissions.strict]
extends = "base"
[permissions.strict.filesystem]
":minimal" = "read"
"~/keys" = "none"
"/data" = "read"
[permissions.strict.filesystem.":workspace_roots"]
"." = "write"
"**/*.env" = "deny"
`,
    [
      "edit /data ask",
      "edit /data/* ask",
      "read ~/keys deny",
      "read ~/keys/* deny",
      "edit ~/keys deny",
      "edit ~/keys/* deny",
      "read <project>/*.env deny",
      "read <project>/*.env/* deny",
      "edit <project>/*.env deny",
      "edit <project>/*.env/* deny",
      "network example.com deny",
      "webfetch *://example.com deny",
      "webfetch *://example.com/* deny",
      "webfetch *://example.com:* deny",
    ],
  ],
  [
    "the older setting instead of a profile",
    'sandbox_mode = "workspace-write"\ndefault_permissions = ":read-only"',
    [],
  ],
])("applies %s", async (_, text, expected) => {
  place.write("project/.codex/config.toml", text)
  expect(await rules()).toEqual(expected)
})

test.each<[string, string, RegExp]>([
  ["rules/a.rules", "x = 1\n", /a\.rules:1:3: expected "\("/],
  [
    "rules/a.rules",
    "\nprefix_rule(pattern = names, decision = 'forbidden')",
    /a\.rules:2:23: expected a literal/,
  ],
  ["rules/a.rules", "prefix_rule(pattern = [], decision = 'forbidden')", /a\.rules:1:1: /],
  ["rules/a.rules", "prefix_rule(pattern = ['rm'], decision = 'no')", /a\.rules:1:1: /],
  ["rules/a.rules", "deny_rule(pattern = ['rm'])\n", /a\.rules:1:1: /],
  ["rules/a.rules", "prefix_rule(pattern = ['rm'", /a\.rules:1:28: expected/],
  ["rules/a.rules", "prefix_rule(pattern = ['rm]", /a\.rules:1:24: /],
  ["config.toml", "sandbox_mode = ", /config\.toml:1:/],
  ["config.toml", 'default_permissions = "gone"', /config\.toml:1:1: .*"gone" does not exist/],
  ["config.toml", 'denied_commands = ["rm"]', /config\.toml:1:1: denied_commands/],
  [
    "config.toml",
    'default_permissions = "a"\n[permissions.a.filesystem]\n"x" = "hide"',
    /config\.toml:3:1: permissions\.a\.filesystem\.x/,
  ],
  [
    "config.toml",
    'default_permissions = "a"\n[permissions.a.commands]\nrm = "deny"',
    /config\.toml:2:2: permissions\.a\.commands/,
  ],
])("stops at an error in %s: %j", async (name, text, message) => {
  place.write(`project/.codex/${name}`, text)
  expect(await place.failure({ trusted: false })).toMatch(message)
})

test("lists what it does not use, and warns about hooks", async () => {
  place.write(
    "project/.codex/config.toml",
    'model = "m"\n[mcp_servers.a]\ncommand = "a"\n[[hooks.PreToolUse]]\nmatcher = "x"\n',
  )
  place.write("project/.codex/agents/a.toml", "")
  const { unusedSettings, warnings } = await place.load()
  expect(unusedSettings).toEqual([".codex/config.toml: model, mcp_servers, hooks", ".codex/agents: all"])
  expect(warnings).toEqual([expect.stringMatching(/config\.toml:4:.*hooks/)])
})
