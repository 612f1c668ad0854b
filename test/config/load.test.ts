import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

describe("precedence", () => {
  test("returns an empty config without any file", async () => {
    const loaded = await place.load()
    expect({ ...loaded, origin: undefined, withMarkdown: undefined }).toEqual({
      config: {},
      permission: { user: [], project: [], untrusted: [], foreign: [], environment: [] },
      unusedSettings: [],
      agentPermission: {},
      projectAgentPermission: {},
      environmentAgentPermission: {},
      plugins: [],
      projectTrusted: true,
      files: [],
      origin: undefined,
      withMarkdown: undefined,
      warnings: [],
      typos: [],
      notes: [],
      ignored: [],
    })
    expect(loaded.origin(["model"])).toBeUndefined()
  })

  test("takes the limits of tenants only from the user's files", async () => {
    place.write("home/.config/tackle/tackle.json", `{ "tenants": { "acme": { "sessions": 2 } } }`)
    place.write("project/tackle.json", `{ "tenants": { "acme": { "sessions": 99 }, "*": { "queued": 9 } } }`)
    expect((await place.load()).config.tenants).toEqual({ acme: { sessions: 2 } })
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
      // The higher one is written first, so that the result does not depend on file times.
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

  test("ignores a file above the work tree or in another directory", async () => {
    place.write("tackle.json", { shell: "above" })
    place.write("project/other/tackle.json", { shell: "beside" })
    expect((await place.load({ directory: join(place.project, "sub") })).files).toEqual([])
  })

  test("reads the user's files from XDG_CONFIG_HOME, unless it is relative", async () => {
    place.write("xdg/tackle/config.json", { shell: "moved" })
    place.write("home/.config/tackle/config.json", { shell: "usual" })
    const environment = { XDG_CONFIG_HOME: join(place.home, "..", "xdg") }
    expect((await place.load({ environment })).config.shell).toBe("moved")
    expect((await place.load({ environment: { XDG_CONFIG_HOME: "xdg" } })).config.shell).toBe("usual")
  })

  test("joins secrets: a project's list does not reveal the user's own", async () => {
    place.write("home/.config/tackle/config.json", { secrets: ["MINE"] })
    place.write("project/tackle.json", { secrets: ["THEIRS"] })
    expect((await place.load()).config.secrets).toEqual(["MINE", "THEIRS"])
    expect((await place.load({ trusted: false })).config.secrets).toEqual(["MINE"])
  })

  test("resolves TACKLE_CONFIG from the directory or home, as JSON or TOML, and requires the file", async () => {
    place.write("project/own.toml", 'shell = "here"')
    place.write("home/own.json", { shell: "home" })
    expect((await place.load({ environment: { TACKLE_CONFIG: "own.toml" } })).config.shell).toBe("here")
    expect((await place.load({ environment: { TACKLE_CONFIG: "~/own.json" } })).config.shell).toBe("home")
    expect(await place.failure({ environment: { TACKLE_CONFIG: "none.json" } })).toMatch(
      /none\.json.*TACKLE_CONFIG/,
    )
  })

  test("keeps the scope of the user's config directory inside a work tree", async () => {
    place.write("home/.config/tackle/tackle.json", { shell: "mine" })
    const directory = join(place.home, ".config/tackle")
    const loaded = await place.load({ directory, worktree: directory, trusted: false })
    expect(loaded.files.map(({ scope }) => scope)).toEqual(["user"])
    expect(loaded.config.shell).toBe("mine")
  })

  test("lists the files with kind and scope", async () => {
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
  test("merges objects by key, replaces lists and appends instructions", async () => {
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

  test("returns the line of the winning value as its origin", async () => {
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

  test("uses the last of duplicate keys, whatever the type of the first", async () => {
    place.write(
      "project/tackle.json",
      '{ "agent": { "a": { "steps": "no" } }, "agent": { "b": { "steps": 2 } } }',
    )
    expect((await place.load()).config.agent).toEqual({ b: { steps: 2 } })
  })
})

test.each(["tackle.json", ".tackle/config.json", "opencode.json"])(
  "takes the status line only from the user's own config, not from %s",
  async (file) => {
    place.write("home/.config/tackle/tackle.json", { status_line: ["mine"] })
    place.write(`project/${file}`, { status_line: ["theirs"], model: "a/b" })
    for (const trusted of [true, false]) {
      const { config, warnings } = await place.load({ trusted })
      expect(config.status_line).toEqual(["mine"])
      expect(warnings.join()).toMatch(/status_line has no effect in a project/)
    }
  },
)
