import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { ConfigError } from "../../src/config/errors.ts"
import type { LoadConfigOptions } from "../../src/config/load.ts"
import type { TrustItem } from "../../src/permission/trust-items.ts"
import type { Rule } from "../../src/schema/permission.ts"
import { createPlace, type TestPlace } from "./place.ts"

let place: TestPlace

beforeEach(() => {
  place = createPlace()
})
afterEach(() => place.remove())

const brief = (rules: readonly Rule[]) =>
  rules.map(({ permission, pattern, action }) => `${permission} ${pattern} ${action}`)

async function failure(options?: Partial<LoadConfigOptions>): Promise<string> {
  const error = await place.load(options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ConfigError)) throw new Error("expected a ConfigError", { cause: error })
  return error.message
}

describe("precedence", () => {
  test("without any file everything is empty", async () => {
    const loaded = await place.load()
    expect({ ...loaded, origin: undefined, withTexts: undefined }).toEqual({
      config: {},
      permission: { user: [], project: [], untrusted: [], environment: [] },
      agentPermission: {},
      projectAgentPermission: {},
      environmentAgentPermission: {},
      plugins: [],
      projectTrusted: true,
      files: [],
      origin: undefined,
      withTexts: undefined,
      warnings: [],
      notes: [],
      ignored: [],
    })
    expect(loaded.origin(["model"])).toBeUndefined()
  })

  const rising = [
    "home/.config/opencode/opencode.json",
    "home/.config/opencode/opencode.jsonc",
    "home/.config/tackle/config.json",
    "home/.config/tackle/tackle.jsonc",
    "TACKLE_CONFIG",
    "project/opencode.json",
    "project/.opencode/opencode.jsonc",
    "project/sub/opencode.json",
    "project/tackle.json",
    "project/tackle.jsonc",
    "project/.tackle/config.json",
    "project/sub/tackle.json",
    "project/sub/.tackle/config.jsonc",
    "TACKLE_CONFIG_CONTENT",
  ]

  test.each(rising.slice(1).map((name, index) => [rising[index] ?? "", name]))(
    "%s yields to %s",
    async (lower, higher) => {
      const environment: Record<string, string> = {}
      const texts = [lower, higher].map((name) => ({ name, text: `{ "shell": "${name}" }` }))
      // The higher one is written first, so that nothing hangs on the time of the files.
      for (const { name, text } of texts.reverse()) {
        if (name === "TACKLE_CONFIG_CONTENT") environment[name] = text
        else if (name === "TACKLE_CONFIG") environment[name] = place.write("elsewhere/own.json", text)
        else place.write(name, text)
      }
      const loaded = await place.load({ directory: join(place.project, "sub"), environment })
      expect(loaded.files).toHaveLength(2)
      expect(loaded.config.shell).toBe(higher)
    },
  )

  test("a file above the work tree or in another directory does not count", async () => {
    place.write("tackle.json", { shell: "above" })
    place.write("project/other/tackle.json", { shell: "beside" })
    expect((await place.load({ directory: join(place.project, "sub") })).files).toEqual([])
  })

  test("XDG_CONFIG_HOME moves the user's files, unless it is relative", async () => {
    place.write("xdg/tackle/config.json", { shell: "moved" })
    place.write("home/.config/tackle/config.json", { shell: "usual" })
    const environment = { XDG_CONFIG_HOME: join(place.home, "..", "xdg") }
    expect((await place.load({ environment })).config.shell).toBe("moved")
    expect((await place.load({ environment: { XDG_CONFIG_HOME: "xdg" } })).config.shell).toBe("usual")
  })

  test("secrets line up: a project's list does not make the person's own seen", async () => {
    place.write("home/.config/tackle/config.json", { secrets: ["MINE"] })
    place.write("project/tackle.json", { secrets: ["THEIRS"] })
    expect((await place.load()).config.secrets).toEqual(["MINE", "THEIRS"])
    expect((await place.load({ trusted: false })).config.secrets).toEqual(["MINE"])
  })

  test("TACKLE_CONFIG may start at the directory or at the home, may be TOML, and has to exist", async () => {
    place.write("project/own.toml", 'shell = "here"')
    place.write("home/own.json", { shell: "home" })
    expect((await place.load({ environment: { TACKLE_CONFIG: "own.toml" } })).config.shell).toBe("here")
    expect((await place.load({ environment: { TACKLE_CONFIG: "~/own.json" } })).config.shell).toBe("home")
    expect(await failure({ environment: { TACKLE_CONFIG: "none.json" } })).toMatch(
      /none\.json.*TACKLE_CONFIG/,
    )
  })

  test("a work tree that holds the user's config directory does not make it a project's", async () => {
    place.write("home/.config/tackle/tackle.json", { shell: "mine" })
    const directory = join(place.home, ".config/tackle")
    const loaded = await place.load({ directory, worktree: directory, trusted: false })
    expect(loaded.files.map(({ scope }) => scope)).toEqual(["user"])
    expect(loaded.config.shell).toBe("mine")
  })

  test("the files are told with kind and scope", async () => {
    const opencode = place.write("project/opencode.json", {})
    const tackle = place.write("home/.config/tackle/config.json", {})
    const loaded = await place.load({ environment: { TACKLE_CONFIG_CONTENT: "{}" } })
    expect(loaded.files).toEqual([
      { path: tackle, kind: "tackle", scope: "user" },
      { path: opencode, kind: "opencode", scope: "project" },
      { path: "TACKLE_CONFIG_CONTENT", kind: "tackle", scope: "env" },
    ])
  })
})

describe("merging", () => {
  test("objects merge by key, lists replace each other, instructions line up", async () => {
    place.write("home/.config/tackle/config.json", {
      provider: { a: { name: "A", models: { "m-1": { limit: { context: 1 } } } } },
      override: ["read", "edit"],
      instructions: ["mine.md"],
    })
    place.write("project/tackle.json", {
      provider: { a: { models: { "m-1": { limit: { output: 2 } } } }, b: {} },
      override: ["bash"],
      instructions: ["docs/*.md", "https://example.test/rules.md", "~/all.md", "/abs.md"],
    })
    place.write("project/.tackle/config.json", { instructions: ["more.md"] })
    const { config } = await place.load()
    expect(config).toEqual({
      provider: { a: { name: "A", models: { "m-1": { limit: { context: 1, output: 2 } } } }, b: {} },
      override: ["bash"],
      instructions: [
        join(place.home, ".config/tackle/mine.md"),
        join(place.project, "docs/*.md"),
        "https://example.test/rules.md",
        join(place.home, "all.md"),
        "/abs.md",
        join(place.project, "more.md"),
      ],
    })
  })

  test("the origin of a value is the line that counts", async () => {
    const user = place.write("home/.config/tackle/config.toml", '\n[provider.a]\nname = "A"\n')
    const project = place.write(
      "project/tackle.json",
      '{\n  "provider": {\n    "a": {\n      "npm": "x" } } }',
    )
    const { origin } = await place.load()
    expect(origin(["provider", "a", "name"])).toEqual({ file: user, line: 3 })
    expect(origin(["provider", "a", "npm"])).toEqual({ file: project, line: 4 })
    expect(origin(["provider", "b"])).toBeUndefined()
    expect(origin(["provider", "a", "name", "x"])).toBeUndefined()
    expect(origin([])).toBeUndefined()
  })

  test("of a key written twice the last counts, whatever the first was", async () => {
    place.write(
      "project/tackle.json",
      '{ "agent": { "a": { "steps": "no" } }, "agent": { "b": { "steps": 2 } } }',
    )
    expect((await place.load()).config.agent).toEqual({ b: { steps: 2 } })
  })
})

describe("permission rules", () => {
  test("come in written order, each with file and line, also where keys look like numbers", async () => {
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

  test("one action stands for everything", async () => {
    place.write("project/tackle.json", { permission: "deny" })
    expect(brief((await place.load()).permission.project)).toEqual(["* * deny"])
  })

  test("line up from file to file, by whose they are", async () => {
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

  test("of agents are kept by agent", async () => {
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

  test("from TOML, as in .opencode/config.toml", async () => {
    const file = place.write(
      "project/.opencode/config.toml",
      '[permission]\nmy_custom_tool = "ask"  # Always ask before running\n',
    )
    const { permission } = await place.load()
    expect(permission.project).toEqual([
      { permission: "my_custom_tool", pattern: "*", action: "ask", source: { file, line: 2 } },
    ])
  })

  test("from TOML in written order, across tables, quotes, dots and numbers", async () => {
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

  test("hostile names are names and nothing else", async () => {
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

  test("an action that does not exist is an error with its place", async () => {
    const file = place.write(
      "project/tackle.json",
      '{ "permission": {\n  "bash": { "ls": "alow" },\n  "edit": ["deny"] } }',
    )
    expect(await failure()).toBe(
      `${file}:2:13: permission.bash.ls: expected "allow", "ask" or "deny". Did you mean "allow"?\n` +
        `${file}:3:3: permission.edit: expected "allow", "ask" or "deny", or an object with patterns and these, found a list.`,
    )
  })
})

describe("what is wrong in Tackle's own files", () => {
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
      'unknown key "retry.zzzzzz". Known here: maxAttempts, maxDelaySeconds.',
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
      'mcp.x.command: expected a list ([…]), found a string. Write each word by itself: ["…", "…"].',
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
    ["no object", "[]", 1, 1, 'a config file holds an object: expected "{"'],
  ])("%s", async (_, text, line, column, message) => {
    const file = place.write("project/tackle.json", text)
    expect(await failure()).toContain(`${file}:${line}:${column}: ${message}`)
  })

  test("is all told at once, and never a value", async () => {
    place.write("project/tackle.json", {
      provider: { a: { options: { apiKey: ["sk-SECRET"], headers: { x: { y: "sk-SECRET" } } } } },
      model: ["sk-SECRET"],
      permission: { bash: "sk-SECRET" },
      agent: { a: { mode: "sk-SECRET", "sk-": "sk-SECRET" } },
    })
    const message = await failure()
    expect(message.split("\n").length).toBeGreaterThanOrEqual(6)
    expect(message).not.toContain("SECRET")
  })

  test("in TOML has its line too", async () => {
    const file = place.write("project/tackle.toml", '# x\n[agent.build]\nmode = "primary"\nstep = 4\n')
    expect(await failure()).toBe(`${file}:4:1: unknown key "agent.build.step". Did you mean "steps"?`)
  })

  test("in TACKLE_CONFIG_CONTENT is told by its name", async () => {
    const environment = { TACKLE_CONFIG_CONTENT: '{ "modell": 1 }' }
    expect(await failure({ environment })).toMatch(/^TACKLE_CONFIG_CONTENT:1:3: unknown key "modell"/)
  })

  test("a directory with a config's name, and one that is too large", async () => {
    mkdirSync(join(place.project, "tackle.json"))
    expect(await failure()).toMatch(/tackle\.json:1:1: .*no regular file/)
    place.write("home/.config/tackle/config.json", " ".repeat(1024 * 1024 + 1))
    expect(await failure()).toMatch(/config\.json:1:1: .*larger than 1 MB/)
  })

  test("a device behind a link does not hang the start", async () => {
    symlinkSync("/dev/zero", join(place.project, "tackle.json"))
    expect(await failure()).toMatch(/no regular file/)
  })
})

describe("OpenCode's files", () => {
  test("give what Tackle knows, and warnings for the rest", async () => {
    const file = place.write(
      "project/opencode.json",
      `{ "$schema": "x", "theme": "dark", "model": "a/b",
  "agent": { "build": { "color": "#fff", "steps": 5, "temperature": "hot" } },
  "provider": { "p": { "models": { "m": { "limit": { "context": 9, "output": "much" }, "reasoning": true } } } },
  "permission": { "bash": { "*": "deni" } } }`,
    )
    const { config, warnings, permission } = await place.load()
    expect(config).toEqual({
      model: "a/b",
      agent: { build: { steps: 5 } },
      provider: { p: { models: { m: { limit: { context: 9 } } } } },
    })
    expect(warnings).toEqual([
      `${file}:4:29: permission.bash.*: expected "allow", "ask" or "deny". Did you mean "deny"? Taken as "ask".`,
      `${file}:2:54: agent.build.temperature: expected a number, found a string. Sampling temperature. Ignored.`,
      `${file}:3:68: provider.p.models.m.limit.output: expected a number, found a string. Ignored.`,
      "opencode.json: Tackle does not use theme, agent.build.color, provider.p.models.m.reasoning.",
    ])
    expect(brief(permission.project)).toEqual(["bash * ask"])
  })

  test("what lacks a required key goes as a whole", async () => {
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
  })

  test("a syntax error is an error here too: rules could be lost", async () => {
    place.write("project/opencode.json", "{ nonsense")
    expect(await failure()).toMatch(/opencode\.json:1:3: expected a key or string/)
  })
})

describe("a project that is not trusted", () => {
  beforeEach(() => {
    place.write("home/.config/tackle/config.json", { model: "mine/model", permission: { a: "allow" } })
    place.write("project/opencode.json", { theme: "x", provider: {}, permission: { c: "deny" } })
    place.write("project/tackle.json", {
      model: "theirs/model",
      modle: "{env:SECRET}",
      provider: { a: { options: { baseURL: "http://evil.test", apiKey: "{env:SECRET}" } } },
      permission: { b: "deny", edit: "allow" },
      agent: { build: { permission: { "*": "allow" } } },
      instructions: ["docs/rules.md"],
    })
  })

  test("has only its rules and instructions counted, and the rest named", async () => {
    const loaded = await place.load({ trusted: false, environment: { SECRET: "x" } })
    expect(loaded.config).toEqual({
      model: "mine/model",
      instructions: [join(place.project, "docs/rules.md")],
    })
    expect(brief(loaded.permission.user)).toEqual(["a * allow"])
    expect(brief(loaded.permission.untrusted)).toEqual(["c * deny", "b * deny", "edit * allow"])
    expect(loaded.permission.project).toEqual([])
    expect(loaded.agentPermission).toEqual({})
    expect(loaded.projectTrusted).toBe(false)
    expect(loaded.ignored).toEqual([
      "opencode.json: theme, provider",
      "tackle.json: model, provider, agent, rules that allow",
    ])
    expect(loaded.warnings).toEqual([expect.stringContaining('unknown key "modle"')])
  })

  test("cannot name files of the person, addresses or anything but text as instructions", async () => {
    place.write("home/key.md", "secret")
    symlinkSync(join(place.home, "key.md"), join(place.project, "link.md"))
    symlinkSync(place.home, join(place.project, "dir"))
    symlinkSync("loop.md", join(place.project, "loop.md"))
    const bad = [
      "../home/key.md",
      "~/key.md",
      join(place.home, "key.md"),
      "link.md",
      "dir/key.md",
      "dir/*.md",
      "{a,../home}/key.md",
      "x/../../home/*.md",
      "https://evil.test/a.md",
      "{env:SECRET}.md",
      "{file:~/key.md}",
      ".env",
      "loop.md",
      "*",
    ]
    place.write("project/tackle.json", {
      instructions: [...bad, "a.md", "docs/**/*.md", ".cursor/rules/*.mdc"],
    })
    const loaded = await place.load({ trusted: false, environment: { SECRET: "x" } })
    expect(loaded.config.instructions).toEqual(
      ["a.md", "docs/**/*.md", ".cursor/rules/*.mdc"].map((name) => join(place.project, name)),
    )
    expect(loaded.ignored).toContain("tackle.json: some instructions")
  })

  test("keeps the rules of the files that are trusted when another changes, and that one still tightens", async () => {
    place.write("project/opencode.json", { permission: { bash: "allow", c: "allow" } })
    place.write("project/tackle.json", { permission: { bash: { "rm *": "deny" }, edit: "allow" } })
    const trusted = (items: readonly TrustItem[]) => ({
      changed: items.filter(({ path }) => path === "tackle.json"),
    })
    const { permission, projectTrusted } = await place.load({ trusted })
    expect(projectTrusted).toBe(false)
    expect(brief(permission.project)).toEqual(["bash * allow", "c * allow"])
    expect(brief(permission.untrusted)).toEqual(["bash rm * deny", "edit * allow"])
  })

  test("cannot write into the line that names what does not count, nor make it endless", async () => {
    const keys = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, 1]))
    place.write("project/opencode.json", { "\ntackle: trusted\u001b[2J\u202e": 1, ...keys })
    const [first = ""] = (await place.load({ trusted: false })).ignored
    expect(first).toMatch(
      /^opencode\.json: <U\+000A>tackle: trusted<U\+001B>\[2J<U\+202E>, k0, .*, 981 more$/,
    )
  })

  test("has its typos told as such, some of them, and what a variable puts in is not held against it", async () => {
    const file = place.write("project/tackle.json", {
      modle: "{env:SECRET}",
      model: "{env:MODEL}",
      sandbox: "of",
      mcp: { "a\nb": 5 },
      ["x".repeat(5000)]: 1,
    })
    const { warnings, ignored } = await place.load({ trusted: false })
    expect(warnings.map((line) => line.slice(0, 400))).toEqual([
      `${file}:1:2: unknown key "modle". Did you mean "model"?`,
      `${file}:1:47: sandbox: expected "auto", "require" or "off", found another string. Did you mean "off"?`,
      expect.stringContaining("mcp.a<U+000A>b: expected an object"),
      expect.stringContaining('unknown key "xxx'),
    ])
    expect(warnings.join("").length).toBeLessThan(2000)
    expect(ignored).toContain("tackle.json: model, sandbox, mcp")
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 1]))
    place.write("project/tackle.json", many)
    expect((await place.load({ trusted: false })).warnings.at(-1)).toBe("95 more mistakes there.")
  })

  test("cannot make an action out of a variable", async () => {
    place.write("project/tackle.json", { permission: { bash: "{env:ACTION}" } })
    expect(await failure({ trusted: false, environment: { ACTION: "allow" } })).toMatch(/expected "allow"/)
  })

  test("a check decides for each file by its content", async () => {
    const seen: string[] = []
    const loaded = await place
      .load({
        trusted: (items) => {
          seen.push(...items.map(({ kind, path, hash }) => `${kind} ${path} ${hash.length}`))
          return { changed: items.filter(({ path }) => path === "opencode.json") }
        },
      })
      .catch((error: unknown) => error)
    expect(seen).toEqual(["config opencode.json 64", "config tackle.json 64"])
    // The trusted file is now read in full, with its mistake.
    expect(loaded).toBeInstanceOf(ConfigError)
  })

  test("environment and user are never asked about", async () => {
    const TACKLE_CONFIG = place.write("own.json", { shell: "mine" })
    const loaded = await place.load({
      environment: { TACKLE_CONFIG, TACKLE_CONFIG_CONTENT: '{ "model": "env/model" }' },
      trusted: (items) => ({ changed: items }),
    })
    expect(loaded.config).toMatchObject({ shell: "mine", model: "env/model" })
  })

  test("without files it counts as trusted", async () => {
    place.remove()
    place = createPlace()
    expect((await place.load({ trusted: false })).projectTrusted).toBe(true)
  })
})
