import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const options = (apiKey: string) => ({ provider: { p: { options: { apiKey } } } })

async function apiKey(environment = {}): Promise<string | undefined> {
  return (await place.load({ environment })).config.provider?.p?.options?.apiKey
}

test("substitutes variables and files, several in one string", async () => {
  place.write("project/keys/a.txt", "  from-file\n")
  place.write("project/tackle.json", options("<{env:A}|{file:keys/a.txt}|{env:A}>"))
  expect(await apiKey({ A: "from-env" })).toBe("<from-env|from-file|from-env>")
})

test("uses the default of a variable that is unset or empty", async () => {
  place.write("project/tackle.json", options("<{env:A:-one}|{env:B:-}|{env:C:-a:-b}>"))
  expect(await apiKey({ A: "" })).toBe("<one||a:-b>")
  expect(await apiKey({ A: "set", B: "b", C: "c" })).toBe("<set|b|c>")
})

test("understands the defaults of variables in Claude Code's list of servers", async () => {
  const variable = (text: string) => `$\{${text}}`
  place.write("project/.mcp.json", {
    mcpServers: {
      far: {
        type: "http",
        url: `${variable("BASE:-https://example.com")}/mcp`,
        headers: { key: variable("KEY:-k-1") },
      },
    },
  })
  const server = async (environment = {}) => (await place.load({ environment })).config.mcp?.far
  expect(await server()).toMatchObject({ url: "https://example.com/mcp", headers: { key: "k-1" } })
  expect(await server({ BASE: "https://x.test" })).toMatchObject({ url: "https://x.test/mcp" })
})

test("does not substitute within a substituted value", async () => {
  place.write("project/tackle.json", options("{env:A}"))
  expect(await apiKey({ A: "{env:B}$&", B: "no" })).toBe("{env:B}$&")
})

test("resolves a file's path from the config file, or from the home", async () => {
  place.write("project/.tackle/key", "beside")
  place.write("home/key", "home")
  place.write("project/.tackle/config.json", options("{file:./key}-{file:~/key}-{file:../.tackle/key}"))
  expect(await apiKey()).toBe("beside-home-beside")
})

test("resolves a path in TACKLE_CONFIG_CONTENT from the directory", async () => {
  place.write("project/key", "here")
  expect(await apiKey({ TACKLE_CONFIG_CONTENT: JSON.stringify(options("{file:key}")) })).toBe("here")
})

test("leaves keys and other text in braces unchanged", async () => {
  place.write("project/tackle.json", {
    shell: "{env} {other:x} {env:}",
    agent: { "{env:A}": { prompt: "{env:A}" } },
  })
  const { config } = await place.load({ environment: { A: "a" } })
  expect(config).toEqual({ shell: "{env} {other:x} {env:}", agent: { "{env:A}": { prompt: "a" } } })
})

test("replaces an unset variable with an empty text, and warns", async () => {
  const file = place.write("project/tackle.json", '{\n "shell": "x{env:NOT_SET}" }')
  const { config, warnings } = await place.load()
  expect(config.shell).toBe("x")
  expect(warnings).toEqual([
    `${file}:2:11: the environment variable NOT_SET is not set and is treated as empty.`,
  ])
})

test("rejects a missing or unreadable file with its location", async () => {
  const file = place.write("project/tackle.toml", '\nshell = "{file:none}"')
  await expect(place.load()).rejects.toThrow(
    `${file}:2:1: the file ${join(place.project, "none")} does not exist.`,
  )
  place.write("project/tackle.toml", '\nshell = "{file:.}"')
  await expect(place.load()).rejects.toThrow(/not a regular file/)
})

test("reports a missing key for its provider, not in every command", async () => {
  place.write("project/tackle.json", options("{env:NOT_SET}"))
  expect((await place.load()).warnings).toEqual([])
})
