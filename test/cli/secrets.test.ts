import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { TackleEvent } from "../../src/event/events.ts"
import { createMachine, eventsOf, type Machine, only } from "./run-tackle.ts"

const token = 'tok-"quoted"-0123456789'
const env = { DEPLOY_TOKEN: token }

/** Returns every file below a directory in one text. */
async function everythingIn(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return (await Promise.all(files.map((file) => readFile(file, "latin1")))).join("\n")
}

function leaks(text: string): boolean {
  return (
    text.includes(token) || text.includes(JSON.stringify(token).slice(1, -1)) || text.includes("0123456789")
  )
}

/** Returns the streamed text, with the deltas of each part joined. */
function streamed(events: readonly TackleEvent[]): string {
  const texts = new Map<string, string>()
  for (const { partID, delta } of only(events, "part.delta"))
    texts.set(partID, (texts.get(partID) ?? "") + delta)
  return [...texts.values()].join("\n")
}

function machineThatLeaks(): Promise<Machine> {
  const command = `curl -H 'Authorization: ${token}' http://127.0.0.1:9/`
  return createMachine({
    config: { secrets: ["DEPLOY_TOKEN"] },
    script: ({ body }) =>
      body.messages.some(({ role }) => role === "tool")
        ? { text: `I used ${token} and it failed.`, pieceSize: 8, pieceDelayMs: 40 }
        : {
            reasoning: `The token is ${token}.`,
            calls: [
              { name: "bash", arguments: { command, description: `Send ${token}` } },
              { name: "write", arguments: { filePath: "token.env.txt", content: `TOKEN=${token}\n` } },
              { name: "todowrite", arguments: { todos: [{ id: "1", content: token, status: "pending" }] } },
            ],
          },
  })
}

test("hides a secret in every event, question, log line, stored part and export of a run", async () => {
  const machine = await machineThatLeaks()
  const run = await machine.run(["run", "--format", "json", "--verbose", `deploy with ${token}, please`], {
    env,
  })
  const events = eventsOf(run)
  const asked = only(events, "permission.asked").map(({ request }) => request)
  expect(asked.map(({ permission }) => permission)).toEqual(expect.arrayContaining(["bash", "edit"]))
  expect(JSON.stringify(asked)).toContain("[secret DEPLOY_TOKEN]")
  expect(asked.find(({ permission }) => permission === "bash")?.metadata.command).toBe(
    "curl -H 'Authorization: [secret DEPLOY_TOKEN]' http://127.0.0.1:9/",
  )
  expect(leaks(run.stdout)).toBe(false)
  expect(leaks(run.stderr)).toBe(false)
  expect(streamed(events)).toContain("I used [secret DEPLOY_TOKEN] and it failed.")
  expect(leaks(streamed(events))).toBe(false)
  expect(leaks(await everythingIn(machine.data))).toBe(false)

  const shown = await Promise.all([
    machine.run(["session", "list"]),
    machine.run(["session", "show"]),
    machine.run(["session", "show", "--format", "json"]),
    machine.run(["session", "export", events[0]?.sessionID ?? ""]),
  ])
  for (const { code, stdout } of shown) {
    expect(code).toBe(0)
    expect(stdout).toContain("[secret DEPLOY_TOKEN]")
    expect(leaks(stdout)).toBe(false)
  }
  // The program receives the model's own text unchanged.
  expect(JSON.stringify(machine.server.requests[0]?.body.messages)).toContain(
    JSON.stringify(token).slice(1, -1),
  )
})

test("hides a secret in a call without a model, and passes it to the program", async () => {
  const machine = await createMachine({
    config: { secrets: ["DEPLOY_TOKEN"], pass_environment: ["DEPLOY_TOKEN"] },
  })
  const command = `test '${token}' = "$DEPLOY_TOKEN" && echo same; echo '${token}'`
  const call = (...flags: string[]) =>
    machine.run(["tool", "call", "bash", JSON.stringify({ command, description: "x" }), ...flags], { env })
  const [text, json, refused] = await Promise.all([
    call("--auto"),
    call("--auto", "--format", "json"),
    call("--deny", "bash", "--format", "json"),
  ])
  expect(text.stdout).toEqual(expect.stringMatching(/^same\n\[secret DEPLOY_TOKEN\]\n/))
  expect(JSON.parse(json.stdout)).toMatchObject({ status: "completed" })
  expect(JSON.parse(refused.stdout)).toMatchObject({ status: "error" })
  for (const { stdout, stderr } of [text, json, refused]) expect(leaks(stdout + stderr)).toBe(false)
})

test("hides a secret that was configured later in an older session too", async () => {
  const machine = await machineThatLeaks()
  const { TACKLE_CONFIG_CONTENT: content = "" } = machine.env
  const later = { ...env, TACKLE_CONFIG_CONTENT: content.replace('"DEPLOY_TOKEN"', '"OTHER"') }
  await machine.run(["run", "--format", "json", `deploy with ${token}`], { env: later })
  expect(leaks((await machine.run(["session", "show"], { env: later })).stdout)).toBe(true)
  expect(leaks((await machine.run(["session", "show", "--format", "json"], { env })).stdout)).toBe(false)
})

test("stores no permission rule that would contain a secret", async () => {
  const machine = await machineThatLeaks()
  const run = await machine.run(["run", "--format", "json", "deploy"], { env })
  for (const { request } of only(eventsOf(run), "permission.asked"))
    expect(request.always.some((pattern) => pattern.includes("[secret"))).toBe(false)
})

test("hides stored keys and tokens in output and log, also without a session", async () => {
  const url = "http://127.0.0.1:9/mcp"
  const words = "stored-key-012 and mcp-token-345"
  const machine = await createMachine({
    config: {
      agent: { clerk: { prompt: words } },
      mcp: { shop: { type: "remote", url, enabled: false } },
    },
    files: { ".tackle/tool/bad.ts": `throw new Error("${words}")` },
  })
  await mkdir(machine.data, { recursive: true, mode: 0o700 })
  const keep = (name: string, value: unknown) =>
    writeFile(join(machine.data, name), JSON.stringify(value), { mode: 0o600 })
  await keep("auth.json", { shop: { type: "api", key: "stored-key-012" } })
  await keep("mcp-auth.json", { [url]: { tokens: { access_token: "mcp-token-345", token_type: "bearer" } } })
  const hidden = `[secret shop key] and [secret ${url} access key]`
  expect((await machine.run(["config", "show"])).stdout).toContain(hidden)
  expect((await machine.run(["tool", "list", "--trust"])).stderr).toContain(hidden)
})
