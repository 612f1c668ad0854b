import { request } from "node:http"
import { expect, test } from "vitest"
import * as z from "zod"
import { startHttp } from "../../../src/mcp/server/http.ts"
import { Tool } from "../../../src/tool/index.ts"
import { connect, key, serve } from "./serve.ts"
import { slowTool } from "./slow-tool.ts"

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
}

/** Sends a request with headers that `fetch` does not allow. */
async function send(url: URL, headers: Record<string, string> = {}, message: object = initialize) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    session: string | undefined
  }>()
  const outgoing = request(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${key}`,
      ...headers,
    },
  })
  outgoing.on("error", reject).on("response", (response) => {
    response.resume().on("close", () => {
      resolve({
        status: response.statusCode ?? 0,
        session: response.headers["mcp-session-id"]?.toString(),
      })
    })
  })
  outgoing.end(JSON.stringify(message))
  return await promise
}

test("serves two clients in separate sessions", async () => {
  const { url, project } = await serve({}, { permission: { bash: "ask", edit: "allow" } })
  const [first, second] = [await connect(url), await connect(url)]
  expect(first.transport.sessionId).not.toBe(second.transport.sessionId)
  expect((await first.client.listTools()).tools.map(({ name }) => name)).toContain("read")

  const received: unknown[] = []
  first.client.setRequestHandler("elicitation/create", () => ({
    action: "accept",
    content: { answer: "once" },
  }))
  second.client.setRequestHandler("elicitation/create", () => ({ action: "decline" }))
  const make = (name: string) => ({
    name: "bash",
    arguments: { command: `touch ${name}`, description: "Make a file" },
  })
  const [done, refused] = await Promise.all([
    first.client.callTool(make("first"), { onprogress: (progress) => void received.push(progress) }),
    second.client.callTool(make("second")),
  ])
  expect(done.isError, JSON.stringify(done.content)).toBeFalsy()
  expect(refused.isError).toBe(true)
  expect(await project.read("first")).toBe("")
  await expect(project.read("second")).rejects.toThrow("ENOENT")
  expect(received.length).toBeGreaterThan(0)
})

test("refuses web pages of other domains", async () => {
  const { url } = await serve()
  expect((await send(url)).status).toBe(200)
  expect((await send(url, { host: `localhost:${url.port}` })).status).toBe(200)
  expect((await send(url, { host: "rebound.example.com" })).status).toBe(403)
  expect((await send(url, { host: "127.0.0.1.example.com" })).status).toBe(403)
  expect((await send(url, { origin: "https://page.example.com" })).status).toBe(403)
  expect((await send(url, { origin: "null" })).status).toBe(403)
  expect((await send(url, { origin: `http://localhost:${url.port}` })).status).toBe(200)
  expect((await send(url, { "content-type": "text/plain" })).status).toBe(415)
  expect((await send(new URL("/elsewhere", url))).status).toBe(404)
})

test("requires the key on each request, also within a session", async () => {
  const { url } = await serve()
  const { session = "" } = await send(url)
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" }
  for (const authorization of [
    "",
    key,
    "Bearer",
    "Bearer secreT",
    `Basic ${key}`,
    `Bearer ${key}, Bearer x`,
  ]) {
    expect((await send(url, { authorization })).status, authorization).toBe(401)
    expect((await send(url, { authorization, "mcp-session-id": session }, ping)).status).toBe(401)
  }
  expect((await send(new URL(`/mcp?key=${key}`, url), { authorization: "" })).status).toBe(401)
  for (const method of ["GET", "DELETE", "HEAD", "OPTIONS"])
    expect((await fetch(url, { method, headers: { "mcp-session-id": session } })).status, method).toBe(401)
  expect((await send(url, { "mcp-session-id": session }, ping)).status).toBe(200)
})

test("does not let a client answer its own requests unless the server trusts it", async () => {
  const asking = Tool.define("asking", {
    description: "Asks.",
    parameters: z.object({}),
    async execute(_args, { question }) {
      return {
        title: "asking",
        output: JSON.stringify(await question?.([{ question: "Sure?" }])) ?? "nobody",
      }
    },
  })
  const { url, project } = await serve(
    { connection: { trustClient: false } },
    { permission: { "*": "allow", bash: "ask" }, tools: [asking] },
  )
  const { client } = await connect(url)
  const received: string[] = []
  client.setRequestHandler("elicitation/create", ({ params: { message } }) => {
    received.push(message)
    return { action: "accept", content: { answer: "once", text0: "yes" } }
  })

  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain("question")
  const command = { command: "touch made", description: "Make a file" }
  const refused = await client.callTool({ name: "bash", arguments: command })
  expect(refused.isError).toBe(true)
  expect(JSON.stringify(refused.content)).toMatch(/does not accept its clients' answers.*--allow/s)
  await expect(project.read("made")).rejects.toThrow("ENOENT")
  const asked = await client.callTool({ name: "asking", arguments: {} })
  expect(JSON.stringify(asked.content)).not.toContain("yes")
  expect(received).toEqual([])
})

test("ends a session and its calls at DELETE", async () => {
  const { slow, started, ended } = slowTool()
  const { url } = await serve({}, { tools: [slow], permission: { "*": "allow" } })
  const { client, transport } = await connect(url)
  const call = client.callTool({ name: "slow", arguments: {} }).catch(() => "gone")
  await started.promise
  const session = transport.sessionId ?? ""
  await transport.terminateSession()
  await ended.promise
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" }
  expect((await send(url, { "mcp-session-id": session }, ping)).status).toBe(404)
  await client.close()
  expect(await call).toBe("gone")
})

test("ends an idle session, but none with an open request", async () => {
  const { url } = await serve({ idleMs: 500 })
  const { session = "" } = await send(url)
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" }
  // The client keeps a stream for server messages open.
  const { client } = await connect(url)
  // Polling is a request too, so it is slower than the session timeout.
  const look = async () => (await send(url, { "mcp-session-id": session }, ping)).status
  await expect.poll(look, { interval: 1_500, timeout: 15_000 }).toBe(404)
  expect((await client.listTools()).tools.length).toBeGreaterThan(0)
})

test("limits the number of clients, and requires initialize first", async () => {
  const { url } = await serve({ maxSessions: 1 })
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" }
  expect((await send(url, {}, ping)).status).toBe(400)
  expect((await send(url)).status).toBe(200)
  expect((await send(url)).status).toBe(503)
})

test("reports a port that is in use", async () => {
  const { url, connection } = await serve()
  await expect(startHttp({ connection, key, port: Number(url.port) })).rejects.toThrow(
    "the port is already in use",
  )
})

test("sends a form on the stream of its call", async () => {
  const { url } = await serve({}, { permission: { bash: "ask" } })
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${key}`,
  }
  const post = (message: object, session: Record<string, string> = {}) =>
    fetch(url, { method: "POST", headers: { ...headers, ...session }, body: JSON.stringify(message) })
  const capabilities = { elicitation: {} }
  const first = await post({ ...initialize, params: { ...initialize.params, capabilities } })
  const session = { "mcp-session-id": first.headers.get("mcp-session-id") ?? "" }
  await first.text()
  await post({ jsonrpc: "2.0", method: "notifications/initialized" }, session)
  const params = { name: "bash", arguments: { command: "make x", description: "Make" } }
  const called = await post({ jsonrpc: "2.0", id: 2, method: "tools/call", params }, session)
  let text = ""
  for await (const chunk of called.body ?? []) {
    text += new TextDecoder().decode(chunk)
    if (text.includes("elicitation/create")) break
  }
  expect(text).toContain("make x")
})
