import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { json } from "node:stream/consumers"
import { afterEach, beforeEach, expect, test } from "vitest"
import { openTokenBook } from "../../../src/mcp/client/oauth/token-book.ts"
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
    book: openTokenBook(project.path("mcp-auth.json")),
    pins: { check: async () => {} },
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

test("a server at an address, with the headers of the config at every request", async () => {
  await using server = await remoteServer("streamableHttp")
  const { pool, call, problems } = openPool(server.url, { "X-Key": "k1" })
  expect(await call("echo", { message: "hi" })).toBe("Echo: hi")
  await pool.close()
  expect(problems).toEqual([])
  expect(new Set(server.asked.map(({ headers }) => headers["x-key"]))).toEqual(new Set(["k1"]))
  // The session is not left behind.
  expect(server.asked.at(-1)?.line).toBe("DELETE /mcp")
})

test("a server that was started anew is greeted anew at the next call", async () => {
  await using server = await remoteServer("streamableHttp")
  const { call } = openPool(server.url)
  expect(await call("echo", { message: "one" })).toBe("Echo: one")
  await server.restart()
  await expect(call("echo", { message: "two" })).rejects.toThrow(/was lost when it was to run echo/)
  expect(await call("echo", { message: "three" })).toBe("Echo: three")
})

test("a server that was lost is not listened to any more", async () => {
  await using server = await breakingOff()
  const { pool, call } = openPool(server.url)
  for (const _ of [1, 2]) await expect(call("break", {})).rejects.toThrow(/was lost when it was to run break/)
  await pool.tools()
  await expect.poll(() => server.listening()).toBe(1)
  await pool.close()
  await expect.poll(() => server.listening()).toBe(0)
})

/** A server of one tool, which breaks off every call of it. `listening`: how many streams of its messages are open. */
async function breakingOff() {
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
    const greeting = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "x", version: "1" },
    }
    const tools = [{ name: "break", inputSchema: { type: "object" } }]
    const result = method === "initialize" ? greeting : { tools }
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

test("an abort is told to the server, which goes on serving", async () => {
  await using server = await remoteServer("streamableHttp")
  const { call } = openPool(server.url)
  await call("echo", { message: "hi" })
  const stop = new AbortController()
  const before = server.asked.length
  const waiting = call("trigger-long-running-operation", { duration: 60, steps: 1 }, stop.signal)
  await expect.poll(() => server.asked.length).toBeGreaterThan(before)
  stop.abort()
  await expect(waiting).rejects.toThrow(/aborted/)
  await expect.poll(() => server.asked.length).toBeGreaterThan(before + 1)
  expect(await call("echo", { message: "again" })).toBe("Echo: again")
  // In the same session.
  expect(new Set(server.asked.slice(1).map(({ headers }) => headers["mcp-session-id"])).size).toBe(1)
})

test("a server of the older transport", async () => {
  await using server = await remoteServer("sse")
  const { call, problems } = openPool(server.url, { "X-Key": "k2" })
  expect(await call("echo", { message: "hi" })).toBe("Echo: hi")
  expect(problems).toEqual([])
  expect(server.asked.slice(0, 2).map(({ line }) => line)).toEqual(["POST /sse", "GET /sse"])
  expect(new Set(server.asked.map(({ headers }) => headers["x-key"]))).toEqual(new Set(["k2"]))
})

/** A server that answers everything in one way; `post`: but a POST with this status. */
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

test("one that wants a key says where to put it, and is not asked in another way", async () => {
  await using server = await answering(401)
  const { pool, problems } = openPool(server.url)
  expect(await pool.tools()).toEqual([])
  expect(problems).toEqual([
    expect.stringMatching(/^The MCP server far cannot be used: .*a key under "headers".*tackle mcp auth far/),
  ])
  expect(server.asked).toHaveLength(1)
})

test.each([
  { status: 302, post: 302 },
  { status: 307, post: 307 },
  { status: 307, post: 404 },
])("headers do not follow a redirect elsewhere (%j)", async ({ status, post }) => {
  await using elsewhere = await answering(200)
  await using server = await answering(status, { location: elsewhere.url }, post)
  const { pool, problems } = openPool(server.url, { "X-Key": "secret" })
  expect(await pool.tools()).toEqual([])
  expect(problems).toHaveLength(1)
  expect(elsewhere.asked).toEqual([])
})

test("one that is not there says why", async () => {
  const server = await answering(200)
  await server[Symbol.asyncDispose]()
  const { pool, problems } = openPool(server.url)
  expect(await pool.status()).toMatchObject([{ id: "far", status: "failed", tools: [] }])
  expect(problems).toEqual([expect.stringMatching(/ECONNREFUSED/)])
})
