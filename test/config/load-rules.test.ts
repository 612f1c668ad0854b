import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Rule } from "../../src/schema/permission.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const brief = (rules: readonly Rule[]) =>
  rules.map(({ permission, pattern, action }) => `${permission} ${pattern} ${action}`)

describe("permission rules", () => {
  test("keeps the written order with file and line, also for keys that look like numbers", async () => {
    const file = place.write(
      "project/tackle.json",
      `{ "permission": {
          "*": "ask",
          "bash": { "git *": "allow", "2": "deny",
                    "1": "allow", "*": "ask" },
          "10": "deny",
          "9": "allow" } }`,
    )
    const { permission, config } = await place.load()
    expect(brief(permission.project)).toEqual([
      "* * ask",
      "bash git * allow",
      "bash 2 deny",
      "bash 1 allow",
      "bash * ask",
      "10 * deny",
      "9 * allow",
    ])
    expect(permission.project.map(({ source }) => source)).toEqual(
      [2, 3, 3, 4, 4, 5, 6].map((line) => ({ file, line })),
    )
    expect(config).not.toHaveProperty("permission")
  })

  test("applies a single action to everything", async () => {
    place.write("project/tackle.json", { permission: "deny" })
    expect(brief((await place.load()).permission.project)).toEqual(["* * deny"])
  })

  test("orders the rules of several files by their owner", async () => {
    place.write("home/.config/opencode/opencode.json", { permission: { a: "allow" } })
    place.write("home/.config/tackle/config.json", { permission: { b: "allow" } })
    const TACKLE_CONFIG = place.write("own.json", { permission: { c: "allow" } })
    place.write("project/opencode.json", { permission: { e: "allow" } })
    place.write("project/tackle.json", { permission: { d: "allow" } })
    const TACKLE_CONFIG_CONTENT = '{ "permission": { "f": "allow" } }'
    const { permission } = await place.load({ environment: { TACKLE_CONFIG, TACKLE_CONFIG_CONTENT } })
    expect(brief(permission.user)).toEqual(["a * allow", "b * allow", "c * allow"])
    expect(brief(permission.project)).toEqual(["e * allow", "d * allow"])
    expect(brief(permission.environment)).toEqual(["f * allow"])
    expect(permission.environment[0]?.source).toEqual({ file: "TACKLE_CONFIG_CONTENT", line: 1 })
  })

  test("keeps the rules of agents by agent", async () => {
    const agent = {
      plan: { steps: 3, permission: { bash: { "ls *": "allow" } } },
      build: { permission: "ask" },
    }
    place.write("home/.config/tackle/config.json", { agent })
    place.write("project/tackle.json", { agent: { plan: { permission: { edit: "deny" } } } })
    const content = JSON.stringify({ agent: { plan: { permission: { edit: "ask" } } } })
    const { config, ...loaded } = await place.load({ environment: { TACKLE_CONFIG_CONTENT: content } })
    expect(brief(loaded.agentPermission.plan ?? [])).toEqual(["bash ls * allow"])
    expect(brief(loaded.agentPermission.build ?? [])).toEqual(["* * ask"])
    expect(brief(loaded.projectAgentPermission.plan ?? [])).toEqual(["edit * deny"])
    expect(brief(loaded.environmentAgentPermission.plan ?? [])).toEqual(["edit * ask"])
    expect(config.agent).toEqual({ plan: { steps: 3 }, build: {} })
  })

  test("reads rules from TOML, as in .opencode/config.toml", async () => {
    const file = place.write(
      "project/.opencode/config.toml",
      '[permission]\nmy_custom_tool = "ask"  # Always ask before running\n',
    )
    const { permission } = await place.load()
    expect(permission.project).toEqual([
      { permission: "my_custom_tool", pattern: "*", action: "ask", source: { file, line: 2 } },
    ])
  })

  test("keeps the written order of TOML across tables, quotes, dots and numbers", async () => {
    place.write(
      "project/tackle.toml",
      `# rules
"$schema" = "x"
shell = """
[permission]
"*" = "allow"
"""
[permission]
"*" = "ask"
bash = { "git *" = "allow", "2" = "deny", '1 "=" x' = "allow" }
read."*.env" = "deny"
edit."a" = "allow"
read."10" = "ask"
read.9 = "allow"
[permission.task]
"general" = "deny" # "x" = "allow"
[agent.plan.permission]
"edit" = "deny"
`,
    )
    const { permission, projectAgentPermission } = await place.load()
    expect(brief(permission.project)).toEqual([
      "* * ask",
      "bash git * allow",
      "bash 2 deny",
      'bash 1 "=" x allow',
      "read *.env deny",
      "edit a allow",
      "read 10 ask",
      "read 9 allow",
      "task general deny",
    ])
    expect(permission.project.map(({ source }) => source?.line)).toEqual([8, 9, 9, 9, 10, 11, 12, 13, 15])
    expect(brief(projectAgentPermission.plan ?? [])).toEqual(["edit * deny"])
  })

  test("treats hostile names as plain names", async () => {
    const text =
      '{ "permission": { "__proto__": "allow", "constructor": { "__proto__": "deny", "toString": "ask" } } }'
    place.write("project/tackle.json", text)
    place.write(
      "project/sub/tackle.toml",
      '[permission]\n__proto__ = "deny"\n[permission.constructor]\n__proto__ = "ask"\n',
    )
    const { permission } = await place.load({ directory: join(place.project, "sub") })
    expect(brief(permission.project)).toEqual([
      "__proto__ * allow",
      "constructor __proto__ deny",
      "constructor toString ask",
      "__proto__ * deny",
      "constructor __proto__ ask",
    ])
    expect(Object.prototype).not.toHaveProperty("allow")
  })

  test("rejects an unknown action with its location", async () => {
    const file = place.write(
      "project/tackle.json",
      '{ "permission": {\n  "bash": { "ls": "alow" },\n  "edit": ["deny"] } }',
    )
    expect(await place.failure()).toBe(
      `${file}:2:13: permission.bash.ls: expected "allow", "ask" or "deny". Did you mean "allow"?\n` +
        `${file}:3:3: permission.edit: expected "allow", "ask" or "deny", or an object that maps patterns to these values, found a list.`,
    )
  })
})
