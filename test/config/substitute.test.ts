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

test("variables and files are put in, several in one string", async () => {
  place.write("project/keys/a.txt", "  from-file\n")
  place.write("project/tackle.json", options("<{env:A}|{file:keys/a.txt}|{env:A}>"))
  expect(await apiKey({ A: "from-env" })).toBe("<from-env|from-file|from-env>")
})

test("what is put in is not looked at again", async () => {
  place.write("project/tackle.json", options("{env:A}"))
  expect(await apiKey({ A: "{env:B}$&", B: "no" })).toBe("{env:B}$&")
})

test("a file's path starts at the config file, or at the home", async () => {
  place.write("project/.tackle/key", "beside")
  place.write("home/key", "home")
  place.write("project/.tackle/config.json", options("{file:./key}-{file:~/key}-{file:../.tackle/key}"))
  expect(await apiKey()).toBe("beside-home-beside")
})

test("in TACKLE_CONFIG_CONTENT it starts at the directory", async () => {
  place.write("project/key", "here")
  expect(await apiKey({ TACKLE_CONFIG_CONTENT: JSON.stringify(options("{file:key}")) })).toBe("here")
})

test("keys stay as they are, and so does what is no substitution", async () => {
  place.write("project/tackle.json", {
    shell: "{env} {other:x} {env:}",
    agent: { "{env:A}": { prompt: "{env:A}" } },
  })
  const { config } = await place.load({ environment: { A: "a" } })
  expect(config).toEqual({ shell: "{env} {other:x} {env:}", agent: { "{env:A}": { prompt: "a" } } })
})

test("a variable that is not set is empty, with a warning", async () => {
  const file = place.write("project/tackle.json", '{\n "shell": "x{env:NOT_SET}" }')
  const { config, warnings } = await place.load()
  expect(config.shell).toBe("x")
  expect(warnings).toEqual([
    `${file}:2:11: the environment variable NOT_SET is not set and is treated as empty.`,
  ])
})

test("a file that is missing or cannot be read is an error with its place", async () => {
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
