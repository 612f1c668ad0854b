import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, realpathSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { readEvents } from "../server/start-server.ts"
import { createMachine, type Machine, type StartOptions, until } from "./run-tackle.ts"

/** Starts `tackle serve` on a free port and waits until it serves. */
async function serve(machine: Machine, flags: string[] = [], options?: StartOptions) {
  const running = machine.start(["serve", "--port", "0", "--format", "json", ...flags], options)
  await until("the server prints its address", () => running.stdout.includes("\n") || running.code !== null)
  expect(running.stderr).toBe("")
  const { url, tokenFile } = JSON.parse(running.stdout)
  const token = readFileSync(tokenFile, "utf8").trim()
  const directory = realpathSync(machine.project.directory)

  async function request(method: string, path: string, body?: unknown) {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what a test asserts.
    const answer: any = await response.json()
    return { status: response.status, headers: response.headers, body: answer }
  }

  return {
    ...running,
    running,
    url,
    token,
    tokenFile,
    request,
    get: (path: string) => request("GET", path),
    post: (path: string, body: unknown = {}) => request("POST", path, body),
    async session() {
      const { body } = await request("POST", "/session", { directory })
      return `/session/${body.id}`
    },
    stop() {
      running.child.kill("SIGTERM")
      return running.ended
    },
  }
}

/** A model that answers slowly. */
const slow = () => ({ text: "word ".repeat(100), pieceSize: 5, pieceDelayMs: 10 })

test("uses the built-in model without a configured model", async () => {
  const machine = await createMachine({ config: null })
  const server = await serve(machine)
  const path = await server.session()
  await server.post(`${path}/input`, { text: "list the files" })
  expect((await server.post(`${path}/wait`)).body.run.text).toContain("tackle/offline")
  await server.stop()
})

test("serves sessions until SIGTERM", async () => {
  const machine = await createMachine({ script: [{ text: "Hello." }] })
  const server = await serve(machine)
  expect(server.tokenFile).toBe(join(realpathSync(machine.data), "server-token"))
  expect(statSync(server.tokenFile).mode & 0o777).toBe(0o600)
  const path = await server.session()
  await server.post(`${path}/input`, { text: "Hi" })
  expect((await server.post(`${path}/wait`)).body.run.text).toBe("Hello.")
  expect(await server.stop()).toMatchObject({ code: 0, signal: null, stderr: "" })
  const shown = await machine.run(["session", "show", path.slice(9)])
  expect(shown.stdout).toContain("Hello.")
})

test("lets a run finish after SIGTERM, starts no other, and ends the streams", async () => {
  const machine = await createMachine({ script: slow })
  const server = await serve(machine)
  const path = await server.session()
  await server.post(`${path}/input`, { text: "Hi" })
  await server.post(`${path}/input`, { text: "Later", delivery: "queue" })
  const events: string[] = []
  const { token } = server
  for await (const event of readEvents(`${server.url}${path}/event`, { token })) {
    if (typeof event === "string") continue
    if (events.length === 0) server.running.child.kill("SIGTERM")
    if (event.data.type === "part.delta" && !events.includes("refused")) {
      const refused = await server.post(`${path}/input`, { text: "More" })
      if (refused.status === 503) {
        events.push("refused")
        expect(refused.body.error.code).toBe("server.stopping")
        expect(refused.headers.get("retry-after")).toBe("5")
        expect((await server.get(path)).body.status).toBe("running")
      }
    }
    events.push(event.data.type === "run.completed" ? event.data.status : event.data.type)
  }
  expect(events).toContain("refused")
  expect(events.at(-1)).toBe("completed")
  expect(await server.running.ended).toMatchObject({ code: 0, signal: null, stderr: "" })
  expect(machine.server.requests).toHaveLength(1)
})

test("interrupts a run that outlasts the grace time, and delivers the queue after the next start", async () => {
  const gate = Promise.withResolvers<void>()
  const machine = await createMachine({
    script: async ({ body: { messages } }) => {
      if (messages.at(-1)?.content === "First") await gate.promise
      return { text: "Hello." }
    },
  })
  const first = await serve(machine, ["--grace", "1"])
  const path = await first.session()
  await first.post(`${path}/input`, { text: "First" })
  await first.post(`${path}/input`, { text: "Second", delivery: "queue" })
  await until("the run starts", () => machine.server.requests.length === 1)
  expect(await first.stop()).toMatchObject({ code: 0, signal: null })
  const second = await serve(machine)
  await until(
    "the queue is delivered",
    async () => (await second.get(`${path}/input`)).body.items.length === 0,
  )
  await second.post(`${path}/wait`)
  const { items } = (await second.get(`${path}/message`)).body
  expect(items.at(-1).parts.some(({ text }: { text?: string }) => text === "Hello.")).toBe(true)
  gate.resolve()
  expect((await second.stop()).code).toBe(0)
})

test("continues a stream after the server was killed", async () => {
  const machine = await createMachine({ script: slow })
  const first = await serve(machine)
  const path = await first.session()
  await first.post(`${path}/input`, { id: "one", text: "Hi" })
  const messages = new Map<string, unknown>()
  const parts = new Map<string, unknown>()
  let after = 0
  const follow = async (url: string, token: string, stop: (type: string) => boolean) => {
    for await (const event of readEvents(`${url}${path}/event?after=${after}`, { token })) {
      if (typeof event === "string") continue
      const { data } = event
      after = data.seq ?? after
      if (data.type.startsWith("message.")) messages.set(data.message.id, data.message)
      if (data.type === "part.updated") parts.set(data.part.id, data.part)
      if (data.type === "part.removed") parts.delete(data.partID)
      if (stop(data.type)) break
    }
  }
  await follow(first.url, first.token, (type) => type === "part.delta")
  first.running.child.kill("SIGKILL")
  await first.running.ended
  const second = await serve(machine)
  expect((await second.post(`${path}/input`, { id: "one", text: "Hi" })).body.state).toBe("promoted")
  await second.post(`${path}/input`, { text: "Again" })
  await second.post(`${path}/wait`)
  const { seq } = (await second.get(path)).body
  await follow(second.url, second.token, () => after >= seq)
  const { items } = (await second.get(`${path}/message`)).body
  expect([...messages.values()]).toEqual(items.map(({ message }: { message: unknown }) => message))
  expect([...parts.values()]).toEqual(items.flatMap((item: { parts: unknown[] }) => item.parts))
  expect((await second.stop()).code).toBe(0)
})

test("shares a data directory with another server", async () => {
  const machine = await createMachine({ script: slow })
  const first = await serve(machine)
  const port = new URL(first.url).port
  const taken = await machine.run(["serve", "--port", port])
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining("the port is already in use")])
  const second = await serve(machine)
  expect(second.token).toBe(first.token)
  const path = await first.session()
  await first.post(`${path}/input`, { text: "Hi" })
  await until(
    "the second server sees the run",
    async () => (await second.get(path)).body.status === "running",
  )
  expect((await second.post(`${path}/interrupt`)).status).toBe(200)
  for (const server of [first, second]) expect((await server.get(path)).body.status).toBe("idle")
  expect((await first.stop()).code).toBe(0)
  expect((await second.stop()).code).toBe(0)
})

/** Runs the script of `docs/server.md` in the project of the machine, and returns its output. */
async function runDocumentedScript(machine: Machine, server: { url: string; tokenFile: string }) {
  const page = readFileSync(resolve(import.meta.dirname, "../../docs/server.md"), "utf8")
  const [, script = ""] = /^```sh\n(url=[\s\S]*?)^```$/m.exec(page) ?? []
  const env = { ...machine.env, TACKLE_URL: server.url, TACKLE_TOKEN_FILE: server.tokenFile }
  const options = { cwd: machine.project.directory, env, timeout: 25_000 }
  return (await promisify(execFile)("sh", ["-eu", "-c", script], options)).stdout
}

test("runs the script of docs/server.md, which uses only curl", async () => {
  const machine = await createMachine({
    script: ({ body: { messages } }) =>
      messages.some(({ role }) => role === "tool")
        ? { text: "I created notes.txt." }
        : { calls: [{ name: "write", arguments: { filePath: "notes.txt", content: "Notes\n" } }] },
  })
  const server = await serve(machine)
  const stdout = await runDocumentedScript(machine, server)
  expect(stdout).toContain('"text":"I created notes.txt."')
  expect(stdout).toContain('"status":"completed"')
  expect(readFileSync(machine.project.path("notes.txt"), "utf8")).toBe("Notes\n")
  expect(JSON.stringify(machine.server.requests.at(-1)?.body)).toContain("Do not change any other file.")
  expect((await server.stop()).code).toBe(0)
})

test("runs the script of docs/server.md without a configured model", async () => {
  const machine = await createMachine({ config: null })
  const server = await serve(machine)
  expect(await runDocumentedScript(machine, server)).toContain('"status":"completed"')
  expect(readFileSync(machine.project.path("notes.txt"), "utf8")).toContain("hello")
  expect((await server.stop()).code).toBe(0)
})

test("listens on a Unix socket that only the user can use", async () => {
  const machine = await createMachine()
  const socket = machine.project.path("tackle.sock")
  const server = await serve(machine, ["--socket", socket])
  expect(server.url).toBe(`unix:${socket}`)
  expect(statSync(socket).mode & 0o777).toBe(0o600)
  const curl = await promisify(execFile)("curl", ["-s", "--unix-socket", socket, "http://localhost/health"])
  expect(JSON.parse(curl.stdout)).toMatchObject({ healthy: true })
  expect((await server.stop()).code).toBe(0)
})

test("keeps the keys of the environment for each project", async () => {
  const machine = await createMachine({ script: () => ({ text: "Hello." }) })
  const config = {
    model: "openai/gpt-5",
    provider: { openai: { options: { baseURL: machine.server.url }, models: { "gpt-5": {} } } },
  }
  const env = { TACKLE_CONFIG_CONTENT: JSON.stringify(config), OPENAI_API_KEY: "key-of-the-environment" }
  const server = await serve(machine, [], { env })
  for (const name of ["one", "two"]) {
    mkdirSync(machine.project.path(name))
    const { body } = await server.post("/session", { directory: machine.project.path(name) })
    await server.post(`/session/${body.id}/input`, { text: "Hi" })
    expect((await server.post(`/session/${body.id}/wait`)).body.run, name).toMatchObject({
      status: "completed",
    })
  }
  expect(machine.server.requests.map(({ headers }) => headers.authorization)).toEqual([
    "Bearer key-of-the-environment",
    "Bearer key-of-the-environment",
  ])
  expect((await server.stop()).code).toBe(0)
})

test("reports an invalid project to its client and serves the others", async () => {
  const machine = await createMachine({ files: { "bad/tackle.json": "{", "good/x": "" } })
  const server = await serve(machine)
  const bad = await server.post("/session", { directory: machine.project.path("bad") })
  expect([bad.status, bad.body.error.message]).toEqual([400, expect.stringContaining("tackle.json")])
  expect((await server.post("/session", { directory: machine.project.path("good") })).status).toBe(201)
  server.running.child.kill("SIGTERM")
  expect((await server.running.ended).code).toBe(0)
})

test("hides the token from the model", async () => {
  const machine = await createMachine({
    config: { permission: { "*": "allow" } },
    script: ({ body: { messages } }) =>
      messages.at(-1)?.role === "user"
        ? { calls: [{ name: "read", arguments: { filePath: join(machine.data, "server-token") } }] }
        : { text: "Done." },
  })
  const server = await serve(machine)
  const path = await server.session()
  await server.post(`${path}/input`, { text: "Read the token." })
  await server.post(`${path}/wait`)
  expect(JSON.stringify(machine.server.requests.at(-1)?.body)).not.toContain(server.token)
  expect(JSON.stringify((await server.get(`${path}/message`)).body)).not.toContain(server.token)
  expect((await server.stop()).code).toBe(0)
})

test("warns that connections from other machines are not encrypted", async () => {
  const machine = await createMachine()
  const running = machine.start(["serve", "--port", "0", "--host", "0.0.0.0"])
  await until("the server warns", () => running.stderr.includes("TLS"))
  running.child.kill("SIGINT")
  expect((await running.ended).code).toBe(0)
})

test("rejects unusable flags as a usage error", async () => {
  const machine = await createMachine({ files: { file: "x" } })
  for (const [flags, text] of [
    [["--root", "missing"], "The --root directory"],
    [["--root", "file"], "is not a directory"],
    [["--cors", "example.com"], "is not an origin"],
    [["--cors", "*"], "is not an origin"],
    [["--token-file", "file"], "chmod 600"],
    [["--host", "192.0.2.1"], "Choose another address with --host."],
    [["--socket", "file"], "the file exists"],
    [["--port", "70000"], "65535"],
  ] as const) {
    const { code, stderr } = await machine.run(["serve", "--port", "0", ...flags])
    expect([code, stderr], flags.join(" ")).toEqual([2, expect.stringContaining(text)])
  }
})

test("loads the HTTP libraries only for the server", async () => {
  const machine = await createMachine()
  const hook =
    'import { registerHooks } from "node:module"; registerHooks({ load(url, context, next) { if (/hono|eventsource-parser/.test(url)) console.error("loaded " + url); return next(url, context) } })'
  const main = resolve(import.meta.dirname, "../../src/cli/main.ts")
  const command = [
    process.execPath,
    "--import",
    `data:text/javascript,${encodeURIComponent(hook)}`,
    main,
  ] as const
  // The cache of the other tests saves most of the time for stripping types.
  const env = { NODE_COMPILE_CACHE: resolve(import.meta.dirname, "../../node_modules/.cache/test-modules") }
  const run = (...args: string[]) => machine.run(args, { command: [...command], env })
  for (const args of [
    ["serve", "--help"],
    ["tool", "list"],
  ])
    expect((await run(...args)).stderr, args.join(" ")).toBe("")
  const { stderr } = await run("serve", "--root", "missing")
  expect(stderr).toContain("loaded ")
})
