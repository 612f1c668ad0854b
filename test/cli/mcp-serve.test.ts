import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { expect, onTestFinished, test } from "vitest"
import { readProcess } from "../../src/util/process-table.ts"
import { createMachine, type Machine, tackleCommand, until } from "./run-tackle.ts"

async function connect(machine: Machine, args: readonly string[] = []) {
  const transport = new StdioClientTransport({
    command: tackleCommand,
    args: ["mcp", "serve", ...args],
    cwd: machine.project.directory,
    env: machine.env,
    stderr: "pipe",
  })
  const client = new Client({ name: "test", version: "1" }, { capabilities: {} })
  onTestFinished(() => client.close())
  await client.connect(transport)
  return { client, transport }
}

test("lists the tools with their schemas and answers a call of a client", async () => {
  const machine = await createMachine({ files: { "a.txt": "one\ntwo\n" } })
  const { client } = await connect(machine)

  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(["read", "edit", "bash", "grep", "todowrite"]))
  for (const absent of ["task", "question", "plan_enter", "plan_exit", "invalid"])
    expect(names).not.toContain(absent)
  const schema = JSON.parse((await machine.run(["tool", "schema", "read"])).stdout)
  expect(tools.find(({ name }) => name === "read")).toEqual({
    name: "read",
    description: schema.description,
    inputSchema: schema.parameters,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  })

  const result = await client.callTool({ name: "read", arguments: { filePath: "a.txt" } })
  expect(result.isError).toBeFalsy()
  expect(JSON.stringify(result.content)).toContain("two")
})

test("refuses a call that needs permission from a client without forms, unless --allow permits it", async () => {
  const machine = await createMachine({ config: { permission: { bash: "ask" } } })
  const command = { name: "bash", arguments: { command: "touch made", description: "Make a file" } }

  const { client: strict } = await connect(machine)
  const refused = await strict.callTool(command)
  expect(refused.isError).toBe(true)
  expect(JSON.stringify(refused.content)).toMatch(/needs the user's approval.*elicitation/s)
  expect(await readdir(machine.project.directory)).toEqual([])

  const { client: allowed } = await connect(machine, ["--allow", "bash:touch *", "--allow", "edit:made"])
  const done = await allowed.callTool(command)
  expect(done.isError, JSON.stringify(done.content)).toBeFalsy()
  expect(await readdir(machine.project.directory)).toEqual(["made"])
})

test("offers only the tools of --tools, also to calls within calls", async () => {
  const machine = await createMachine({
    files: { "a.txt": "text" },
    config: { experimental: { batch_tool: true } },
  })
  const { client } = await connect(machine, ["--tools", "glob,batch"])
  expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(["batch", "glob"])
  await expect(client.callTool({ name: "read", arguments: { filePath: "a.txt" } })).rejects.toThrow(
    /not one of the selected tools.*batch/,
  )
  const nested = await client.callTool({
    name: "batch",
    arguments: { calls: [{ tool: "read", parameters: { filePath: "a.txt" } }] },
  })
  expect(JSON.stringify(nested.content)).toContain("read")
  expect(JSON.stringify(nested.content)).not.toContain("text\\n")
})

test("rejects an invalid choice at the start", async () => {
  const machine = await createMachine()
  const typo = await machine.run(["mcp", "serve", "--tools", "raed"])
  expect(typo).toMatchObject({ code: 2, stdout: "" })
  expect(typo.stderr).toContain('Unknown tool "raed"')
  expect((await machine.run(["mcp", "serve", "--tools", "task"])).stderr).toContain("only in a session")
  expect((await machine.run(["mcp", "serve", "--agent", "nobody"])).stderr).toContain("nobody")
  for (const flag of [["--port", "1"], ["--trust-client"]])
    expect((await machine.run(["mcp", "serve", ...flag])).stderr).toContain("--http")
  expect(await machine.run(["mcp", "serve", "--http", "--key", ""])).toMatchObject({ code: 2, stdout: "" })
})

test("over HTTP, requires a key and refuses a client's own answers without --trust-client", async () => {
  const machine = await createMachine({ config: { permission: { bash: "ask", edit: "allow" } } })
  const serve = async (args: readonly string[], env: Record<string, string> = {}) => {
    const running = machine.start(["mcp", "serve", "--http", "--port", "0", ...args], { env })
    await until("it says where it is", () => running.stdout.includes("Ctrl+C"))
    await until("it listens", () => running.stdout.endsWith("\n"))
    return { running, url: new URL(running.stdout.split(" ")[0] ?? "") }
  }
  const call = async (url: URL, key: string, file: string) => {
    const requestInit = { headers: { authorization: `Bearer ${key}` } }
    const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } })
    onTestFinished(() => client.close())
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { answer: "once" } }))
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
    return await client.callTool({
      name: "bash",
      arguments: { command: `touch ${file}`, description: "Make a file" },
    })
  }

  const open = await serve([])
  expect((await fetch(open.url, { method: "POST" })).status).toBe(401)
  await expect(call(open.url, "", "none")).rejects.toThrow()
  await until("it prints the key", () => open.running.stdout.includes("TACKLE_MCP_KEY"))
  const [, printed = ""] = /Bearer ([\w-]{43})"/.exec(open.running.stdout) ?? []
  expect((await call(open.url, printed, "refused")).isError).toBe(true)

  const trusting = await serve(["--trust-client"], { TACKLE_MCP_KEY: "chosen" })
  expect((await call(trusting.url, "chosen", "made")).isError).toBeFalsy()
  expect(trusting.running.stdout).not.toContain("chosen")
  expect(await readdir(machine.project.directory)).toEqual(["made"])

  const another = await serve([])
  await until("it prints the key", () => another.running.stdout.includes("TACKLE_MCP_KEY"))
  expect(another.running.stdout).not.toContain(printed)
})

test("writes only the protocol to stdout and problems to the log, and ends when stdin closes", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/loud.ts": `import * as z from "zod"
import { Tool } from "tackle/tool"
console.log("loading loudly")
export default Tool.define("loud", {
  description: "Prints.",
  parameters: z.object({}),
  async execute() {
    console.log("printing loudly")
    return { title: "loud", output: "done" }
  },
})
`,
    },
    config: { permission: { "*": "allow" }, sandbox: "off" },
  })
  const child = spawn(tackleCommand, ["mcp", "serve", "--trust"], {
    cwd: machine.project.directory,
    env: machine.env,
    stdio: ["pipe", "pipe", "pipe"],
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  const call = (id: number, name: string, given: object) =>
    send({ id, method: "tools/call", params: { name, arguments: given } })

  send({
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  })
  send({ method: "notifications/initialized" })
  send({ id: 99, result: {} })
  call(2, "loud", {})
  await until("the loud tool is done", () => stdout.includes('"done"'))
  call(3, "bash", { command: "echo $$ > pid; exec sleep 600", description: "Wait" })
  const pid = async () => Number(await readFile(machine.project.path("pid"), "utf8").catch(() => ""))
  await until("the command runs", async () => (await pid()) > 0)
  child.stdin.end()
  const [code] = await once(child, "close")

  expect(code).toBe(0)
  for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" })
  expect(stderr).toContain("printing loudly")
  const [log = ""] = await readdir(join(machine.data, "log"))
  expect(await readFile(join(machine.data, "log", log), "utf8")).toContain(
    "an MCP message could not be handled",
  )
  // A process that has ended keeps its pid until its parent, or init after the end of the server, collects it.
  expect(readProcess(await pid())?.alive ?? false).toBe(false)
})
