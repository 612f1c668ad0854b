import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { ConfigError } from "../../src/config/errors.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const agent = (fields: string, body = "") => `---\n${fields}\n---\n${body}\n`

/** Returns the agent of the config, without its missing prototype. */
async function agentNamed(name: string) {
  const { config } = await place.load()
  return config.agent?.[name] && JSON.parse(JSON.stringify(config.agent[name]))
}

test("builds the agent from the fields and the text", async () => {
  place.write(
    "project/.tackle/agent/review.md",
    agent(
      [
        "description: Reads changes",
        "mode: subagent",
        "model: test/m",
        "temperature: 0.2",
        "steps: 12",
        "hidden: true",
        "tools:",
        "  write: false",
        "  my_*: false",
        "permission:",
        "  bash:",
        '    "*": deny',
        '    "git diff*": allow',
      ].join("\n"),
      "\nYou review.\n\nBe {env:HOME} kind.\n",
    ),
  )
  const { config, projectAgentPermission, agentPermission, files } = await place.load()
  expect(JSON.parse(JSON.stringify(config.agent))).toEqual({
    review: {
      description: "Reads changes",
      mode: "subagent",
      model: "test/m",
      temperature: 0.2,
      steps: 12,
      hidden: true,
      tools: { write: false, "my_*": false },
      // Nothing is substituted in text for a model.
      prompt: "You review.\n\nBe {env:HOME} kind.",
    },
  })
  const file = `${place.project}/.tackle/agent/review.md`
  expect(projectAgentPermission.review).toEqual([
    { permission: "bash", pattern: "*", action: "deny", source: { file, line: 13 } },
    { permission: "bash", pattern: "git diff*", action: "allow", source: { file, line: 14 } },
  ])
  expect(agentPermission).toEqual({})
  expect(files).toEqual([{ path: file, kind: "tackle", scope: "project" }])
})

test("prefers the file with the higher precedence for each field, and returns its origin", async () => {
  const rising = [
    "home/.claude/agents/x.md",
    "home/.config/opencode/agent/x.md",
    "home/.config/tackle/agents/x.md",
    "project/.claude/agents/x.md",
    "project/.opencode/agents/x.md",
    "project/.tackle/agent/x.md",
    "project/.tackle/agents/x.md",
  ]
  const files: string[] = []
  for (const path of rising) {
    files.push(place.write(path, agent(`name: x\ndescription: ${path}`)))
    const { config, origin } = await place.load()
    expect(config.agent?.x?.description).toBe(path)
    expect(origin(["agent", "x", "description"])).toEqual({ file: files.at(-1), line: 3 })
  }
  place.write("project/.tackle/agents/x.md", agent("mode: primary"))
  expect(await agentNamed("x")).toMatchObject({ mode: "primary", description: rising.at(-2) })
  expect((await place.load()).files.map(({ path }) => path)).toEqual(files)
})

test("names agents by path, or by the name field", async () => {
  place.write("project/.opencode/agent/team/docs.md", "You write docs.")
  place.write("project/.tackle/agent/a.md", agent("name: b"))
  const { config } = await place.load()
  expect(Object.keys(config.agent ?? {}).sort()).toEqual(["b", "team/docs"])
  expect(config.agent?.["team/docs"]?.prompt).toBe("You write docs.")
})

describe("Tackle's own files are strict", () => {
  const problems: [name: string, text: string, message: RegExp][] = [
    [
      "an unknown field",
      agent("description: a\ntoolz: {}"),
      /a\.md:3:1: unknown key "agent\.a\.toolz".*"tools"/,
    ],
    [
      "a wrong type",
      agent("temperature: warm"),
      /a\.md:2:1: agent\.a\.temperature: expected a number, found a string/,
    ],
    ["no model name", agent("model: sonnet"), /a\.md:2:1: agent\.a\.model: expected provider\/model/],
    ["no action", agent("permission:\n  bash: alow"), /a\.md:3:3: agent\.a\.permission\.bash: .*"allow"\?/],
    ["bad YAML", agent("description: a: b"), /a\.md:2:14: invalid YAML/],
    ["an alias", agent("description: &x a\nprompt: *x"), /a\.md:3:9: aliases/],
    ["a list", agent("- a"), /a\.md:2:1: .*expected fields/],
    ["a name with a wildcard", agent('name: "*"'), /a\.md:2:1: the name must have at most 128 characters/],
    ["a long name", agent(`name: ${"a".repeat(129)}`), /a\.md:2:1: the name must .* at most 128 characters/],
    ...[600, 60_000].map((depth): [string, string, RegExp] => [
      `${depth} nested lists`,
      agent(`a: ${"[".repeat(depth)}${"]".repeat(depth)}`),
      /a\.md:2:\d+: the fields are nested too deeply: at most 500 levels/,
    ]),
  ]
  test.for(problems)("%s", async ([, text, message]) => {
    place.write("project/.tackle/agent/a.md", text)
    const error = await place.load().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toMatch(message)
  })
})

describe("other programs' files", () => {
  test("notes unknown fields, and applies the rest", async () => {
    const file = place.write(
      "project/.opencode/agent/a.md",
      agent("description: Use it: like this\ncolor: red\nmodel: fast\nmaxSteps: 3", "Do."),
    )
    const { config, notes, warnings } = await place.load()
    expect(config.agent?.a).toEqual({ description: "Use it: like this", steps: 3, prompt: "Do." })
    expect(notes.map(({ text }) => text)).toEqual([
      `${file}:4:1: agent.a.model: expected provider/model, found another string. Model for the agent, as provider/model. The value is ignored.`,
      ".opencode/agent/a.md: Tackle does not use agent.a.color.",
    ])
    expect(new Set(notes.map((note) => note.file))).toEqual(new Set([file]))
    expect(warnings).toEqual([])
  })

  test("blocks the agent of an unreadable file, and reads the others", async () => {
    const bad = place.write("project/.claude/agents/bad.md", agent("a:\n  - b: c: d"))
    place.write("project/.claude/agents/good.md", agent("name: good"))
    const { config, notes } = await place.load()
    expect(config.agent?.bad).toEqual({ problem: expect.stringMatching(/bad\.md:3:8: invalid YAML/) })
    expect(config.agent?.good).toEqual({})
    expect(notes).toEqual([{ file: bad, text: expect.stringMatching(/invalid YAML.*cannot run/) }])
  })

  test.each<[string, string, RegExp]>([
    [".claude/agents", "permissionMode: strict", /a\.md:2:1: .*permissionMode/],
    [".claude/agents", "disallowedTools: Bsh(rm:*)", /a\.md:2:1: disallowedTools: .*Bsh/],
    [".claude/agents", "deniedTools: Bash", /a\.md:2:1: .*deniedTools/],
    [".claude/agents", "permission: {bash: never}", /a\.md:2:14: agent\.a\.permission\.bash/],
    [".opencode/agents", "permissions: [{action: edit, effect: deny}]", /permissions\[0\]\.resource/],
    [
      ".opencode/agents",
      "permissions: [{action: edit, resource: '*', effect: no}]",
      /permissions\[0\]\.effect/,
    ],
    [".opencode/agents", "permissions: [edit]", /permissions\[0\]: expected an object/],
    [".opencode/agents", "permissons: [edit]", /permissons/],
    [".opencode/agents", "tools: Read, Grep", /agent\.a\.tools: expected an object/],
    [".opencode/agents", "tools: {write: deny}", /agent\.a\.tools\.write/],
    [".opencode/agents", "disable: yes please", /agent\.a\.disable/],
  ])("blocks an agent in %s with the field %s", async (directory, field, message) => {
    place.write(`project/${directory}/a.md`, agent(field, "Do."))
    expect((await place.load()).config.agent?.a).toEqual({ problem: expect.stringMatching(message) })
  })

  test("applies the limits of Claude's agents", async () => {
    place.write(
      "project/.claude/agents/a.md",
      agent(
        'permissionMode: plan\nmaxTurns: 3\ndisallowedTools: "Bash(rm:*), Read(./keys), NotebookEdit"',
        "Do.",
      ),
    )
    const { config, projectAgentPermission } = await place.load()
    expect(config.agent?.a).toEqual({ prompt: "Do.", steps: 3 })
    expect(projectAgentPermission.a?.map((rule) => [rule.permission, rule.pattern, rule.action])).toEqual([
      ["edit", "*", "deny"],
      ["sandbox_escape", "*", "deny"],
      ["bash", "rm*", "deny"],
      ["read", `${place.project}/keys`, "deny"],
      ["read", `${place.project}/keys/*`, "deny"],
      ["edit", "*.ipynb", "deny"],
    ])
  })

  test("denies paths of the project in a Claude agent of any directory", async () => {
    place.write(
      "project/.claude/agents/team/b.md",
      agent("name: b\ndisallowedTools: Read(secrets/**)", "Do."),
    )
    const { projectAgentPermission } = await place.load()
    const patterns = Object.values(projectAgentPermission).flatMap((rules) =>
      rules.map(({ pattern }) => pattern),
    )
    expect(patterns).toContain(`${place.project}/secrets/*`)
    expect(patterns.filter((pattern) => pattern.includes(".claude"))).toEqual([])
  })

  test("limits the tools to Claude's list, and allows the known ones", async () => {
    place.write(
      "project/.claude/agents/a.md",
      agent(
        "name: reader\ntools: Read, Grep, NotebookEdit, Bash(git diff:*), mcp__docs__find, mcp__all\ndisallowedTools: [LS]\nmodel: opus",
      ),
    )
    const { config, notes } = await place.load()
    expect(config.agent?.reader).toEqual({
      tools: { "*": false, read: true, grep: true, docs_find: true, "all_*": true, list: false },
    })
    const told = notes.map(({ text }) => text).join("\n")
    for (const word of [
      "NotebookEdit has no equivalent",
      "Bash(git diff:*) has no equivalent",
      'no Claude model that matches "opus"',
    ])
      expect(told).toContain(word)
  })

  test("keeps all tools without a list", async () => {
    place.write("project/.claude/agents/a.md", agent("name: a\nmodel: inherit", "Do."))
    expect(await agentNamed("a")).toEqual({ prompt: "Do." })
    expect((await place.load()).notes).toEqual([])
  })
})

test("does not let a project return a tool that the user removed from an agent", async () => {
  place.write("home/.config/tackle/agent/reader.md", agent('tools:\n  "*": false\n  read: true'))
  place.write("project/.tackle/agent/reader.md", agent("tools:\n  bash: true\n  read: false"))
  place.write("project/tackle.json", {
    agent: { reader: { tools: { edit: true } }, other: { tools: { a: true } } },
  })
  const { config } = await place.load()
  expect(config.agent?.reader?.tools).toEqual({ "*": false, read: false })
  expect(config.agent?.other?.tools).toEqual({ a: true })
})

test("ignores an agent of an untrusted project, even its errors", async () => {
  place.write("project/.tackle/agent/a.md", agent("toolz: {}"))
  place.write("home/.config/tackle/agent/mine.md", agent("description: mine"))
  const { config, ignored, files } = await place.load({ trusted: false })
  expect(Object.keys(config.agent ?? {})).toEqual(["mine"])
  expect({ ignored, count: files.length }).toEqual({ ignored: [], count: 1 })
})

test("does not take unclosed front matter for a prompt", async () => {
  const file = place.write("project/.tackle/agent/review.md", "---\ndescription: Reads\nYou review.\n")
  await expect(place.load()).rejects.toThrow(
    `${file}:1:1: the front matter is not closed: add a second line with ---.`,
  )
})
