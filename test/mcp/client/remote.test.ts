import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { json } from "node:stream/consumers"
import { afterEach, beforeEach, expect, test } from "vitest"
import { openTokenStore } from "../../../src/mcp/client/oauth/token-store.ts"
import { createMcpPool, type McpPool } from "../../../src/mcp/client/pool.ts"
import { fakeContext } from "../../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../../src/testing/project.ts"
import { errorMessage } from "../../../src/util/errors.ts"
import { remoteServer } from "./remote-servers.ts"

let project: TemporaryProject
const pools: McpPool[] = []

beforeEach(async () => {
  project = await temporaryProject({})
})
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
  await project.remove()
})

function openPool(url: string, headers?: Record<string, string>) {
  const problems: string[] = []
  const pool = createMcpPool({
    servers: [{ id: "far", settings: { type: "remote", url, ...(headers ? { headers } : {}) } }],
    worktree: tmpdir(),
    trusted: false,
    environment: {},
    record: () => () => {},
    tokens: openTokenStore(project.path("mcp-auth.json")),
    fingerprints: { check: async () => {} },
    onChanged: async () => {},
    onProblem: (error) => problems.push(errorMessage(error)),
    restarts: { delayMs: 1 },
  })
  pools.push(pool)
  async function call(name: string, args: unknown, abort?: AbortSignal): Promise<string> {
    const found = (await pool.tools()).find(({ tool }) => tool.id === `far_${name}`)
    if (!found) throw new Error(`there is no ${name}: ${problems.join()}`)
    await using ctx = fakeContext({ directory: tmpdir(), ...(abort ? { abort } : {}) })
    return (await (await found.tool.init()).execute(args, ctx)).output
  }
  return { pool, problems, call }
}

test("sends the configured headers with every request", async () => {
  await using server = await remoteServer("streamableHttp")
  const { pool, call, problems } = openPool(server.url, { "X-Key": "k1" })
  expect(await call("echo", { message: "hi" })).toBe("Echo: hi")
  await pool.close()
  expect(problems).toEqual([])
  expect(new Set(server.asked.map(({ headers }) => headers["x-key"]))).toEqual(new Set(["k1"]))
  // The session is closed, once. An answer to a request of the server, for example for the roots, can follow.
  expect(server.asked.filter(({ line }) => line === "DELETE /mcp")).toHaveLength(1)
})

test("reconnects at the next call after the server restarted", async () => {
  await using server = await remoteServer("streamableHttp")
  const { call } = openPool(server.url)
  expect(await call("echo", { message: "one" })).toBe("Echo: one")
  await server.restart()
  await expect(call("echo", { message: "two" })).rejects.toThrow(
    /Lost the connection to the MCP server far while trying to run echo/,
  )
  expect(await call("echo", { message: "three" })).toBe("Echo: three")
})

test("closes the stream of a lost connection", async () => {
  await using server = await droppingServer()
  const { pool, call } = openPool(server.url)
  for (const _ of [1, 2])
    await expect(call("break", {})).rejects.toThrow(
      /Lost the connection to the MCP server far while trying to run break/,
    )
  await pool.tools()
  await expect.poll(() => server.listening()).toBe(1)
  await pool.close()
  await expect.poll(() => server.listening()).toBe(0)
})

/** Starts a server that drops the connection at every call. `listening` counts its open streams. */
async function droppingServer() {
  const open = new Set<object>()
  const server = createServer(async (request, answer) => {
    if (request.method === "DELETE") return void answer.writeHead(200).end()
    if (request.method === "GET") {
      open.add(answer)
      answer.on("close", () => open.delete(answer))
      return void answer.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
    }
    const { id, method } = (await json(request)) as { id?: number; method: string }
    if (method === "tools/call") return void answer.destroy()
    if (id === undefined) return void answer.writeHead(202).end()
    const initialized = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "x", version: "1" },
    }
    const tools = [{ name: "break", inputSchema: { type: "object" } }]
    const result = method === "initialize" ? initialized : { tools }
    answer.writeHead(200, { "content-type": "application/json", "mcp-session-id": randomUUID() })
    answer.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    listening: () => open.size,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

test("cancels an aborted call at the server and keeps the session", async () => {
  await using server = await remoteServer("streamableHttp")
  const { call } = openPool(server.url)
  await call("echo", { message: "hi" })
  const stop = new AbortController()
  // The client also opens a stream with GET, at any time.
  const posts = () => server.asked.filter(({ line }) => line.startsWith("POST")).length
  const before = posts()
  const waiting = call("trigger-long-running-operation", { duration: 60, steps: 1 }, stop.signal)
  await expect.poll(posts).toBe(before + 1)
  stop.abort()
  await expect(waiting).rejects.toThrow(/aborted/)
  await expect.poll(posts).toBe(before + 2)
  expect(await call("echo", { message: "again" })).toBe("Echo: again")
  // In the same session.
  expect(new Set(server.asked.slice(1).map(({ headers }) => headers["mcp-session-id"])).size).toBe(1)
})

test("keeps the connection if the server does not report changes to its resources", async () => {
  await using server = await droppingServer()
  const { pool } = openPool(server.url)
  await pool.tools()
  const watching = { server: "far", uri: "x://y", onChanged() {}, signal: new AbortController().signal }
  await expect(pool.watchResource(watching)).rejects.toThrow(
    /^The MCP server far could not watch x:\/\/y: it does not report changes to its resources\.$/,
  )
})

test("falls back to the older transport", async () => {
  await using server = await remoteServer("sse")
  const { call, problems } = openPool(server.url, { "X-Key": "k2" })
  expect(await call("echo", { message: "hi" })).toBe("Echo: hi")
  expect(problems).toEqual([])
  expect(server.asked.slice(0, 2).map(({ line }) => line)).toEqual(["POST /sse", "GET /sse"])
  expect(new Set(server.asked.map(({ headers }) => headers["x-key"]))).toEqual(new Set(["k2"]))
})

/** Starts a server that answers every request with the same status; `post` is the status for POST. */
async function answering(status: number, headers: Record<string, string> = {}, post = status) {
  const asked: string[] = []
  const server = createServer((incoming, answer) => {
    asked.push(`${incoming.method} ${incoming.headers["x-key"]}`)
    answer.writeHead(incoming.method === "POST" ? post : status, headers).end()
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    asked,
    async [Symbol.asyncDispose]() {
      await new Promise((done) => server.close(done))
    },
  }
}

test("explains a 401 and does not try another transport", async () => {
  await using server = await answering(401)
  const { pool, problems } = openPool(server.url)
  expect(await pool.tools()).toEqual([])
  expect(problems).toEqual([
    expect.stringMatching(/^The MCP server far is unavailable: .*a key under "headers".*tackle mcp auth far/),
  ])
  expect(server.asked).toHaveLength(1)
})

test("explains a refused key", async () => {
  await using server = await answering(401)
  const { pool, problems } = openPool(server.url, { Authorization: "Bearer wrong" })
  expect(await pool.tools()).toEqual([])
  expect(problems).toEqual([
    expect.stringMatching(/: it returned 401\. Check the key under "headers" in the configuration\.$/),
  ])
})

test.each([
  { status: 302, post: 302 },
  { status: 307, post: 307 },
  { status: 307, post: 404 },
])("does not send headers to another origin at a redirect (%j)", async ({ status, post }) => {
  await using elsewhere = await answering(200)
  await using server = await answering(status, { location: elsewhere.url }, post)
  const { pool, problems } = openPool(server.url, { "X-Key": "secret" })
  expect(await pool.tools()).toEqual([])
  expect(problems).toHaveLength(1)
  expect(elsewhere.asked).toEqual([])
})

test("explains why a server cannot be reached", async () => {
  const server = await answering(200)
  await server[Symbol.asyncDispose]()
  const { pool, problems } = openPool(server.url)
  expect(await pool.status()).toMatchObject([{ id: "far", status: "failed", tools: [] }])
  expect(problems).toEqual([expect.stringMatching(/ECONNREFUSED/)])
})

/** A streamable HTTP server that answers a call as the name of its tool says. */
async function oddServer() {
  const names = ["null", "end", "drop", "json", "fine"]
  const tools = names.map((name) => ({ name, description: name, inputSchema: { type: "object" } }))
  const server = createServer(async (request, answer) => {
    if (request.method !== "POST") return void answer.writeHead(405).end()
    const { id, method, params } = (await json(request)) as {
      id?: number
      method: string
      params?: { protocolVersion?: string; name?: string }
    }
    if (id === undefined) return void answer.writeHead(202).end()
    const { protocolVersion, name } = params ?? {}
    const info = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } }
    const fine = { content: [{ type: "text", text: "fine" }] }
    const result = method === "initialize" ? info : method === "tools/list" ? { tools } : fine
    const called = method === "tools/call" ? name : "fine"
    const type = called === "json" ? "application/json" : "text/event-stream"
    answer.writeHead(200, { "content-type": type })
    const reply = (value: unknown) => JSON.stringify({ jsonrpc: "2.0", id, result: value })
    if (called === "json") answer.end(reply(null))
    else if (called === "null") answer.write(`data: ${reply(null)}\n\n`)
    else if (called === "end") answer.end(": nothing\n\n")
    else if (called === "drop") answer.write(": nothing\n\n", () => answer.destroy())
    else answer.end(`event: message\ndata: ${reply(result)}\n\n`)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test.each([
  ["null", /could not run null: .*"result" must be an object, got null/],
  ["json", /to run json: /],
  ["end", /could not run end: .*ended its response without a reply/],
  ["drop", /could not run drop: .*ended its response without a reply/],
])("fails a call whose answer is malformed or ends early (%s)", async (name, message) => {
  await using server = await oddServer()
  const { call } = openPool(server.url)
  await expect(call(name, {})).rejects.toThrow(message)
  expect(await call("fine", {})).toBe("fine")
})
