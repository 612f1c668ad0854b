import { readFileSync, realpathSync } from "node:fs"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { createMachine, type Machine, until } from "./run-tackle.ts"

describePostgres("tackle worker", () => {
  let postgres: PostgresServer

  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.stop())

  /** Starts a command that prints a line of JSON when it is ready. */
  async function startReady(machine: Machine, args: string[]) {
    const started = machine.start([...args, "--json", "--database", postgres.url()])
    onTestFinished(() => void started.child.kill("SIGKILL"))
    await until("the command is ready", () => started.stdout.includes("\n") || started.code !== null)
    expect(started.stderr).toBe("")
    return { started, line: JSON.parse(started.stdout) }
  }

  const worker = (machine: Machine, ...flags: string[]) => startReady(machine, ["worker", ...flags])

  async function server(machine: Machine) {
    const { started, line } = await startReady(machine, ["serve", "--port", "0", "--dispatch"])
    const token = readFileSync(line.tokenFile, "utf8").trim()
    async function request(method: string, path: string, body?: unknown) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
      const response = await fetch(`${line.url}${path}`, { method, headers, body: JSON.stringify(body) })
      // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what a test asserts.
      return (await response.json()) as any
    }
    const post = (path: string, body: unknown = {}) => request("POST", path, body)
    return {
      started,
      post,
      get: (path: string) => request("GET", path),
      async session() {
        const { id } = await post("/session", { directory: realpathSync(machine.project.directory) })
        return `/session/${id}`
      },
    }
  }

  /** A machine whose model calls `command` once, and ends when it has a result. */
  async function machineWith(command: string) {
    const machine = await createMachine({
      script: ({ body: { messages } }) =>
        messages.some(({ role }) => role === "tool")
          ? { text: "Done." }
          : { calls: [{ name: "bash", arguments: { command } }] },
      config: { permission: { "*": "allow" }, sandbox: "off" },
    })
    await machine.run(["db", "migrate", "--database", postgres.url()])
    return machine
  }

  const texts = (messages: unknown) => JSON.stringify(messages)

  test("runs the sessions of a server that does not run them itself", async () => {
    const machine = await machineWith("echo one >> effects")
    const { session, post, get, started } = await server(machine)
    const path = await session()
    await post(`${path}/input`, { text: "go" })
    expect(await post(`${path}/wait?timeout=1`)).toEqual({ status: "running" })
    expect(machine.server.requests).toEqual([])

    const { started: working, line } = await worker(machine, "--concurrency", "2")
    expect(line).toMatchObject({ concurrency: 2, roots: [realpathSync(machine.project.directory)] })
    expect(await post(`${path}/wait`)).toMatchObject({ status: "idle" })
    expect(texts(await get(`${path}/message`))).toContain("Done.")
    await post(`${path}/input`, { text: "again" })
    expect(await post(`${path}/wait`)).toMatchObject({ status: "idle" })
    expect(await machine.project.read("effects")).toBe("one\n")
    for (const { child, ended } of [started, working]) {
      child.kill("SIGTERM")
      expect(await ended).toMatchObject({ code: 0, stderr: "" })
    }
  })

  test("continues the session of a killed worker", async () => {
    const machine = await machineWith("echo one >> effects; sleep 60")
    const { session, post, get } = await server(machine)
    const first = await worker(machine)
    const path = await session()
    await post(`${path}/input`, { text: "go" })
    await expect.poll(() => machine.project.read("effects").catch(() => "")).toBe("one\n")
    const second = await worker(machine)
    first.started.child.kill("SIGKILL")
    expect(await post(`${path}/wait`)).toMatchObject({ status: "idle" })
    const messages = texts(await get(`${path}/message`))
    expect(messages).toContain(
      "The process ended while this call was running. The call may have taken effect",
    )
    expect(messages).toContain("The process that worked on this session ended. Continue")
    expect(messages).toContain("Done.")
    expect(await machine.project.read("effects")).toBe("one\n")
    second.started.child.kill("SIGTERM")
    await second.started.ended
  })

  test("passes its session to another worker when the time after SIGTERM is over", async () => {
    const machine = await machineWith("echo one >> effects; sleep 60")
    const { session, post, get } = await server(machine)
    const first = await worker(machine, "--grace", "1")
    const path = await session()
    await post(`${path}/input`, { text: "go" })
    await expect.poll(() => machine.project.read("effects").catch(() => "")).toBe("one\n")
    const second = await worker(machine)
    first.started.child.kill("SIGTERM")
    expect(await first.started.ended).toMatchObject({ code: 0, stderr: "" })
    expect(await post(`${path}/wait`)).toMatchObject({ status: "idle" })
    const messages = texts(await get(`${path}/message`))
    expect(messages).toContain("The process that worked on this session ended. Continue")
    expect(messages).toContain("Done.")
    second.started.child.kill("SIGTERM")
    await second.started.ended
  })

  test("lets a run end after SIGTERM, and leaves the next input to another worker", async () => {
    const machine = await machineWith("until [ -e go ]; do sleep 0.05; done")
    const { session, post, get } = await server(machine)
    const first = await worker(machine, "--grace", "20")
    const path = await session()
    await post(`${path}/input`, { text: "go" })
    await expect.poll(() => machine.server.requests.length).toBe(1)
    await post(`${path}/input`, { text: "later", delivery: "queue" })
    first.started.child.kill("SIGTERM")
    await machine.project.write("go", "")
    expect(await first.started.ended).toMatchObject({ code: 0, stderr: "" })
    expect(texts(await get(`${path}/message`))).toContain("Done.")
    expect((await get(`${path}/input`)).items).toMatchObject([{ text: "later", state: "pending" }])
    const second = await worker(machine)
    expect(await post(`${path}/wait`)).toMatchObject({ status: "idle" })
    expect((await get(`${path}/input`)).items).toEqual([])
    expect(texts(await get(`${path}/message`))).not.toContain("The process that worked")
    second.started.child.kill("SIGTERM")
    await second.started.ended
  })

  test("needs a database", async () => {
    const machine = await createMachine()
    expect(await machine.run(["worker"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Workers require a PostgreSQL database"),
    })
  })
})
