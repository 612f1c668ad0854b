import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { LoadConfigOptions } from "../../src/config/load.ts"
import type { Rule } from "../../src/schema/permission.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const brief = (rules: readonly Rule[]) =>
  rules.map(({ permission, pattern, action }) => `${permission} ${pattern} ${action}`)

describe("problems in Tackle's own files", () => {
  test.each([
    ["an unknown key", '{\n  "permision": {} }', 2, 3, 'unknown key "permision". Did you mean "permission"?'],
    ["swapped letters", '{ "modle": "a/b" }', 1, 3, 'unknown key "modle". Did you mean "model"?'],
    [
      "an unknown key of an agent",
      '{ "agent": { "build": {\n "temprature": 1 } } }',
      2,
      2,
      'unknown key "agent.build.temprature". Did you mean "temperature"?',
    ],
    [
      "an unknown key far from all",
      '{ "retry": { "zzzzzz": 1 } }',
      1,
      14,
      'unknown key "retry.zzzzzz". Known keys: maxAttempts, maxDelaySeconds.',
    ],
    [
      "a wrong type",
      '{ "model":\n 5 }',
      1,
      3,
      "model: expected a string, found a number. Write it in quotes.",
    ],
    [
      "a wrong item",
      '{ "override": ["a",\n  7] }',
      2,
      3,
      "override[1]: expected a string, found a number. Write it in quotes.",
    ],
    ["a wrong choice", '{ "agent": { "a": { "mode": "main" } } }', 1, 21, "agent.a.mode: expected"],
    [
      "an MCP server whose command is a text",
      '{ "mcp": { "x": { "type": "local",\n "command": "node x" } } }',
      2,
      2,
      'mcp.x.command: expected a list ([…]), found a string. Write a list of words: ["…", "…"].',
    ],
    [
      "an MCP server as other programs write it",
      '{ "mcp": { "x": { "command": "npx",\n "args": [] } } }',
      2,
      2,
      'unknown key "mcp.x.args".',
    ],
    [
      "a wrong number",
      '{ "agent": { "a": { "steps": 0 } } }',
      1,
      21,
      "agent.a.steps: expected a number above 0, found 0.",
    ],
    [
      "an object where none is",
      '{ "agent": [] }',
      1,
      3,
      "agent: expected an object ({…}), found an empty list.",
    ],
    [
      "a reserved name",
      '{ "provider": { "__proto__": {} } }',
      1,
      17,
      "provider.__proto__: this key is not allowed.",
    ],
    ["a reserved name at the top", '{ "__proto__": {} }', 1, 3, 'unknown key "__proto__".'],
    ["no object", "[]", 1, 1, 'a config file must contain an object: expected "{"'],
  ])("%s", async (_, text, line, column, message) => {
    const file = place.write("project/tackle.json", text)
    expect(await place.failure()).toContain(`${file}:${line}:${column}: ${message}`)
  })

  test("reports all problems at once, and never a value", async () => {
    place.write("project/tackle.json", {
      provider: { a: { options: { apiKey: ["sk-SECRET"], headers: { x: { y: "sk-SECRET" } } } } },
      model: ["sk-SECRET"],
      permission: { bash: "sk-SECRET" },
      agent: { a: { mode: "sk-SECRET", "sk-": "sk-SECRET" } },
    })
    const message = await place.failure()
    expect(message.split("\n").length).toBeGreaterThanOrEqual(6)
    expect(message).not.toContain("SECRET")
  })

  test("reports the problems of every file at once, in the order of the text", async () => {
    const user = place.write("home/.config/tackle/config.json", '{ "modle": 1,\n "sandbox": "of" }')
    const broken = place.write("project/opencode.json", "{ nonsense")
    const own = place.write(
      "project/tackle.json",
      '{\n "shell": "{file:no}",\n "permission": { "bash": "alow" },\n "model": 5,\n "secrets": "{file:nor}" }',
    )
    expect((await place.failure()).split("\n")).toEqual([
      expect.stringContaining(`${user}:1:3: unknown key "modle"`),
      expect.stringContaining(`${user}:2:2: sandbox: expected`),
      expect.stringContaining(`${broken}:1:3: expected a key`),
      expect.stringContaining(`${own}:2:11: the file `),
      expect.stringContaining(`${own}:3:18: permission.bash: expected`),
      expect.stringContaining(`${own}:4:2: model: expected a string`),
      expect.stringContaining(`${own}:5:2: secrets: expected`),
      expect.stringContaining(`${own}:5:13: the file `),
    ])
  })

  test("reports an unknown formatter with the other problems, unless an unreadable file may define it", async () => {
    place.write("project/tackle.json", { modle: 1, formatter: { pretier: {} } })
    expect(await place.failure()).toMatch(/unknown key "modle".*\n.*The formatter "pretier" is unknown/)
    place.write("home/.config/tackle/tackle.json", { formatter: { pretier: { command: "x" } } })
    expect(await place.failure()).toMatch(/command: expected a list.*\n.*unknown key "modle"[^\n]*$/)
  })

  test("keeps the other sections, and nothing of a file that cannot be parsed", async () => {
    place.write("home/.config/tackle/config.json", "{ nonsense")
    place.write("project/tackle.json", {
      model: "a/b",
      mcp: { on: { type: "local", command: ["x"] }, off: { type: "local", command: ["y"], enabled: "no" } },
      permission: { bash: "alow", edit: "deny" },
      secrets: ["A_B"],
      shell: "{file:no}",
      formatter: { pretier: {} },
    })
    const mistakes: string[] = []
    const onProblems: LoadConfigOptions["onProblems"] = (found) =>
      mistakes.push(...found.map(({ text }) => text.slice(0, 8)))
    const { config, permission } = await place.load({ onProblems })
    expect(mistakes).toEqual(["expected", "mcp.off.", "permissi", "the file"])
    expect(config).toEqual({ model: "a/b", secrets: ["A_B"], formatter: { pretier: {} } })
    expect(brief(permission.project)).toEqual(["bash * ask", "edit * deny"])
  })

  test("reports the line in a TOML file", async () => {
    const file = place.write("project/tackle.toml", '# x\n[agent.build]\nmode = "primary"\nstep = 4\n')
    expect(await place.failure()).toBe(`${file}:4:1: unknown key "agent.build.step". Did you mean "steps"?`)
  })

  test("reports the location of an unknown formatter, unless another file defines it", async () => {
    place.write("home/.config/tackle/tackle.json", { formatter: { mine: { command: ["mine", "$FILE"] } } })
    const text = '{\n  "formatter": {\n    "mine": { "extensions": [".x"] },\n    "pretier": {}\n  }\n}'
    place.write("project/tackle.json", text)
    expect(await place.failure()).toMatch(
      /tackle\.json:4:5: The formatter "pretier" is unknown: .* biome, prettier/,
    )
    place.write("project/tackle.json", text.replace('"pretier": {}', '"pretier": { "disabled": true }'))
    expect((await place.load()).config.formatter).toMatchObject({ mine: { extensions: [".x"] } })
  })

  test("reports TACKLE_CONFIG_CONTENT by the name of the variable", async () => {
    const environment = { TACKLE_CONFIG_CONTENT: '{ "modell": 1 }' }
    expect(await place.failure({ environment })).toMatch(/^TACKLE_CONFIG_CONTENT:1:3: unknown key "modell"/)
  })

  test("reports a directory with a config's name, and a file that is too large", async () => {
    mkdirSync(join(place.project, "tackle.json"))
    expect(await place.failure()).toMatch(/tackle\.json:1:1: .*not a regular file/)
    place.write("home/.config/tackle/config.json", " ".repeat(1024 * 1024 + 1))
    expect(await place.failure()).toMatch(/config\.json:1:1: .*larger than 1 MB/)
  })

  test("does not hang on a device behind a link", async () => {
    symlinkSync("/dev/zero", join(place.project, "tackle.json"))
    expect(await place.failure()).toMatch(/not a regular file/)
  })
})

describe("OpenCode's files", () => {
  test("applies the keys that Tackle knows, and warns of the rest", async () => {
    const file = place.write(
      "project/opencode.json",
      `{ "$schema": "x", "theme": "dark", "model": "a/b",
  "agent": { "build": { "color": "#fff", "steps": 5, "temperature": "hot" } },
  "provider": { "p": { "models": { "m": { "limit": { "context": 9, "output": "much" }, "reasoning": true } } } } }`,
    )
    const { config, warnings } = await place.load()
    expect(config).toEqual({
      model: "a/b",
      agent: { build: { steps: 5 } },
      provider: { p: { models: { m: { limit: { context: 9 } } } } },
    })
    expect(warnings).toEqual([
      `${file}:2:54: agent.build.temperature: expected a number, found a string. Sampling temperature. The value is ignored.`,
      `${file}:3:68: provider.p.models.m.limit.output: expected a number, found a string. The value is ignored.`,
      "opencode.json: Tackle does not use theme, agent.build.color, provider.p.models.m.reasoning.",
    ])
  })

  test.each<[string, string, string[]]>([
    [
      "an unknown action",
      '{ "permission": { "bash": { "*": "deni" } } }',
      ['1:29: permission.bash.*: expected "allow", "ask" or "deny". Did you mean "deny"?'],
    ],
    [
      "a misspelled key of an action",
      `{ "permission": { "bash": {
  "rm *": { "acton": "allow" },
  "ls *": { "acton": "allow", "action": "deny" } } } }`,
      [
        '2:13: unknown key "permission.bash.rm *.acton". Did you mean "action"?',
        '3:13: unknown key "permission.bash.ls *.acton". Did you mean "action"?',
      ],
    ],
    [
      "invalid examples",
      '{ "permission": { "bash": { "ls": { "action": "allow", "examples": [] } } } }',
      ['1:68: permission.bash.ls.examples: expected an object that maps "allow", "ask" or "deny" to lists.'],
    ],
  ])("stops at %s", async (_, text, problems) => {
    const file = place.write("project/opencode.json", text)
    expect(await place.failure()).toBe(problems.map((problem) => `${file}:${problem}`).join("\n"))
  })

  test("drops an entry that lacks a required key", async () => {
    place.write("project/opencode.json", {
      provider: { p: { name: "P", models: { m: { name: "M", cost: { input: 1, more: 2 } } } } },
      override: ["a", 1, 2, "b"],
    })
    const { config, warnings } = await place.load()
    expect(config).toEqual({
      provider: { p: { name: "P", models: { m: { name: "M" } } } },
      override: ["a", "b"],
    })
    expect(warnings).toHaveLength(4)
    expect(warnings[0]).toContain("cost.output is missing: expected a number. The object is ignored.")
  })

  test("rejects a syntax error, as rules could be lost", async () => {
    place.write("project/opencode.json", "{ nonsense")
    expect(await place.failure()).toMatch(/opencode\.json:1:3: expected a key or string/)
  })
})
