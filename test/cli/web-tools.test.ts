import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

async function serve(body: string, type = "text/html"): Promise<string> {
  const server = createServer((_, response) => response.writeHead(200, { "content-type": type }).end(body))
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  onTestFinished(() => {
    server.closeAllConnections()
    return new Promise<void>((closed) => server.close(() => closed()))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

test("lets webfetch reach this machine only by a rule that names private_network", async () => {
  const url = await serve("<h1>Here</h1>")
  const machine = await createMachine({ config: { permission: { "*": "allow" } } })
  const call = (...flags: string[]) =>
    machine.run(["tool", "call", "webfetch", JSON.stringify({ url }), ...flags])
  const [all, auto, web, other, named] = await Promise.all([
    call(),
    call("--auto"),
    call("--allow", "*", "--allow", "webfetch"),
    call("--allow", "private_network:localhost"),
    call("--allow", "private_network:127.0.0.1"),
  ])
  for (const refused of [all, auto, web, other]) {
    expect(refused.code).toBe(3)
    expect(refused.stderr).toContain('private_network "127.0.0.1" is denied by a rule')
  }
  expect(named).toMatchObject({ code: 0, stdout: "# Here\n" })
})

test("calls apply_patch by hand for any model; models get it, or edit and write", async () => {
  const machine = await createMachine({ files: { "a.txt": "one\n" } })
  const patchText = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch"
  const called = await machine.run(["tool", "call", "apply_patch", JSON.stringify({ patchText }), "--auto"])
  expect(called).toMatchObject({ code: 0, stdout: "Applied the patch:\nM a.txt\n" })

  const offered = async (model: string) => {
    const { stdout } = await machine.run(["tool", "list", "--model", model])
    return stdout.split("\n").flatMap((line) => /^(?:edit|write|apply_patch)\b/.exec(line)?.[0] ?? [])
  }
  expect(await offered("openai/gpt-5.1-codex")).toEqual(["apply_patch"])
  expect(await offered("openai/gpt-4.1")).toEqual(["edit", "write"])
})

test("offers websearch where environment or config names a search, and hides its key from commands", async () => {
  const results = [{ title: "One", url: "https://one.example/", content: "first" }]
  const url = await serve(JSON.stringify({ results }), "application/json")
  const machine = await createMachine()
  const call = (env: Record<string, string>) =>
    machine.run(["tool", "call", "websearch", '{"query": "x"}', "--auto"], { env })
  const config = JSON.stringify({ search: { backend: "tavily", key: "k", url } })
  const [none, byVariable, byConfig, command] = await Promise.all([
    call({}),
    call({ SEARXNG_URL: url }),
    call({ TACKLE_CONFIG_CONTENT: config }),
    machine.run(["tool", "call", "bash", '{"command": "echo [$TAVILY_API_KEY]"}', "--auto"], {
      env: { TAVILY_API_KEY: "secret" },
    }),
  ])
  expect(none.code).not.toBe(0)
  for (const { stdout } of [byVariable, byConfig])
    expect(stdout).toBe("1. One\nhttps://one.example/\nfirst\n")
  expect(command.stdout).toMatch(/^\[\]/)
})
