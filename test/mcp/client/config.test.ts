import { afterEach, beforeEach, expect, test } from "vitest"
import { enabledSettings } from "../../../src/config/enabled-settings.ts"
import { enabledServers } from "../../../src/mcp/client/config.ts"
import { createTestProject, type TestProject } from "../../config/test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const local = { type: "local", command: ["mcp-server", "--stdio"] }

test("merges servers of the user and of a trusted project, in OpenCode's shape", async () => {
  place.write("home/.config/tackle/config.json", {
    mcp: { mine: { ...local, environment: { TOKEN: "{env:SECRET}" } } },
  })
  place.write("project/opencode.json", {
    mcp: { theirs: { type: "remote", url: "https://example.test/mcp", headers: { A: "b" }, enabled: true } },
  })
  place.write("project/tackle.json", { mcp: { mine: { enabled: false } } })
  const { config, warnings } = await place.load({ environment: { SECRET: "x" } })
  expect(warnings).toEqual([])
  expect(config.mcp).toMatchObject({
    mine: { ...local, environment: { TOKEN: "x" }, enabled: false },
  })
  expect(enabledServers(config.mcp).map(({ id }) => id)).toEqual(["theirs"])
})

test("ignores and reports the servers of an untrusted project", async () => {
  place.write("project/tackle.json", { mcp: { evil: local } })
  const { config, ignored } = await place.load({ trusted: false })
  expect(config.mcp).toBeUndefined()
  expect(ignored).toEqual(["tackle.json: mcp"])
})

test("shows the program and the URL that the user is asked to trust", async () => {
  const text = JSON.stringify({ mcp: { a: local, b: { type: "remote", url: "http://example.test/" } } })
  const settings = await enabledSettings("tackle.json", text)
  const noted = settings.filter(({ note }) => note !== undefined)
  expect(noted).toEqual([
    {
      key: "mcp.a.command",
      value: ["mcp-server", "--stdio"],
      note: expect.stringContaining("program that runs"),
    },
    {
      key: "mcp.b.url",
      value: "http://example.test/",
      note: expect.stringContaining("receives the arguments of their calls"),
    },
  ])
})

test.each([
  [{ type: "local", command: [] }, /command/],
  [{ type: "local", command: "npx server" }, /command/],
  [{ type: "remote", url: "file:///etc/passwd" }, /url/],
  [{ type: "pigeon" }, /type|mcp\.a/],
])("rejects %j with its location", async (server, words) => {
  place.write("project/tackle.json", { mcp: { a: server } })
  await expect(place.load()).rejects.toThrow(words)
})

test("warns about an unknown key and keeps the server", async () => {
  place.write("project/opencode.json", {
    mcp: { a: { type: "remote", url: "https://example.test/", oauth: { clientId: "x" }, note: "ours" } },
  })
  const { config, warnings } = await place.load()
  expect(config.mcp).toEqual({
    a: { type: "remote", url: "https://example.test/", oauth: { clientId: "x" } },
  })
  expect(warnings).toEqual([expect.stringContaining("note")])
})

const claudeServers = {
  mcpServers: {
    files: { command: "npx", args: ["-y", "server", `\${ROOT}`], env: { TOKEN: `\${SECRET}` } },
    far: { type: "http", url: "https://example.test/mcp", headers: { Authorization: `Bearer \${SECRET}` } },
    wrong: { args: ["x"] },
  },
  permission: { "*": "allow" },
}

test("reads .mcp.json with the lowest precedence of the project", async () => {
  place.write("project/.mcp.json", claudeServers)
  place.write("project/tackle.json", { mcp: { far: { enabled: false } } })
  const { config, permission, warnings } = await place.load({ environment: { SECRET: "x", ROOT: "/r" } })
  expect(config.mcp).toEqual({
    files: { type: "local", command: ["npx", "-y", "server", "/r"], environment: { TOKEN: "x" } },
    far: {
      type: "remote",
      url: "https://example.test/mcp",
      headers: { Authorization: "Bearer x" },
      enabled: false,
    },
  })
  expect(permission).toEqual({ user: [], project: [], untrusted: [], foreign: [], environment: [] })
  expect(warnings).toEqual([expect.stringContaining("mcp.wrong")])
})

test("uses .mcp.json only after trust, and shows its servers for it", async () => {
  const file = place.write("project/.mcp.json", claudeServers)
  const { config, ignored } = await place.load({ trusted: false })
  expect(config.mcp).toBeUndefined()
  expect(ignored).toEqual([".mcp.json: mcp"])
  expect(await enabledSettings(file, JSON.stringify(claudeServers))).toContainEqual({
    key: "mcp.files.command",
    value: ["npx", "-y", "server", "{env:ROOT}"],
    note: expect.stringMatching(/program that runs.*includes the variable ROOT/),
  })
})

test("shows the variables that a config includes, without their defaults", async () => {
  expect(await enabledSettings("tackle.json", '{ "model": "{env:MODEL:-a/b}" }')).toEqual([
    { key: "model", value: "{env:MODEL:-a/b}", note: "includes the variable MODEL" },
  ])
})
