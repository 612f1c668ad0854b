import { stat } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

const plugin = `export default async () => ({ auth: {
  provider: "own",
  methods: [
    { type: "oauth", label: "In the browser", authorize: async () => ({
      url: "https://own.test/login", instructions: "It continues by itself.", method: "auto",
      callback: async () => ({ type: "success", access: "a", refresh: "r", expires: 1 }),
    }) },
    { type: "api", label: "By key" },
  ],
} })`

test("stores a key from stdin for its provider, shows it nowhere and forgets it on logout", async () => {
  const machine = await createMachine()
  const login = await machine.run(["auth", "login", "openai"], { stdin: "sk-very-secret\n" })
  expect(login).toMatchObject({ code: 0, stdout: "Signed in to openai.\n" })
  expect((await stat(join(machine.data, "auth.json"))).mode & 0o777).toBe(0o600)
  const list = await machine.run(["auth", "list"])
  expect(list.stdout).toBe("openai  signed in\n")
  expect((await machine.run(["auth", "logout", "openai"])).stdout).toContain("Signed out of openai")
  expect(await machine.run(["auth", "logout", "openai"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Providers with credentials: none"),
  })
  expect(await machine.run(["auth", "login", "openai"], { stdin: "" })).toMatchObject({ code: 2 })
  expect(await machine.run(["auth", "login", "openai"], { stdin: "two words\n" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("A key is one word"),
  })
  expect((await machine.run(["auth", "list"])).stdout).not.toContain("openai")
})

test("rejects an unknown provider with near names, and knows providers of the config and of a plugin", async () => {
  const files = { ".tackle/plugin/own.mjs": plugin, "tackle.json": '{"provider": {"mine": {}}}' }
  const machine = await createMachine({ files })
  const logIn = (provider: string, ...flags: string[]) =>
    machine.run(["auth", "login", provider, ...flags], { stdin: "sk-key\n" })
  expect(await logIn("anthropc")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining('The provider "anthropc" does not exist. Did you mean anthropic?'),
  })
  const unknown = await logIn("mine")
  expect(unknown.code).toBe(2)
  expect(unknown.stderr).toContain("openai, anthropic, google, ollama")
  expect(unknown.stderr).toContain("trust the project with --trust")
  expect((await machine.run(["auth", "list"])).stdout).toContain("No credentials are stored")
  expect(await logIn("mine", "--trust")).toMatchObject({ code: 0 })
  expect(await logIn("own", "--trust", "--method", "By key")).toMatchObject({ code: 0 })
})

test("shows the login page of a plugin, stores its tokens and requires --method without a terminal", async () => {
  const machine = await createMachine({ files: { ".tackle/plugin/own.mjs": plugin } })
  const unclear = await machine.run(["auth", "login", "own", "--trust"])
  expect(unclear).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Available methods: In the browser, By key."),
  })
  const login = await machine.run(["auth", "login", "own", "--trust", "--method", "In the browser"])
  expect(login.stdout).toContain("https://own.test/login")
  expect(login).toMatchObject({ code: 0, stdout: expect.stringContaining("Signed in to own.") })
  const list = JSON.parse((await machine.run(["auth", "list", "--trust", "--format", "json"])).stdout)
  expect(list).toEqual({
    providers: ["own"],
    methods: [{ provider: "own", methods: ["In the browser", "By key"] }],
  })
})
