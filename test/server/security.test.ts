import { chmod, readFile, stat, symlink, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { expect, test } from "vitest"
import { failureDelay, readTokenFile } from "../../src/server/tokens.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { setUp, tokens } from "./start-server.ts"

/** Sends bytes over a connection and returns what comes back until the server closes it. */
function exchange(url: string, text: string): Promise<string> {
  const { port, hostname } = new URL(url)
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(Number(port), hostname)
  let answer = ""
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    answer += chunk
  })
  socket.on("error", () => resolve(answer))
  socket.on("close", () => resolve(answer))
  socket.write(text)
  return promise
}

/** Sends one request with these headers, and closes the connection. */
async function raw(url: string, line: string, headers: Record<string, string>, body = ""): Promise<number> {
  const lines = Object.entries({ connection: "close", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const answer = await exchange(url, `${line} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
  return Number(answer.split(" ")[1])
}

const authorization = `Bearer ${tokens.admin}`

test("refuses every route without a valid token", async () => {
  const { server, session, get } = await setUp()
  const path = await session()
  for (const sent of [
    undefined,
    "",
    "Bearer",
    "Bearer wrong",
    `Basic ${tokens.admin}`,
    tokens.admin,
    `Bearer ${tokens.admin}x`,
  ]) {
    const headers = sent === undefined ? undefined : { authorization: sent }
    const response = await fetch(`${server.url}${path}`, { headers })
    expect(response.status, sent).toBe(401)
    expect(response.headers.get("www-authenticate")).toBe("Bearer")
    // A success ends the delays.
    expect((await get(path)).status).toBe(200)
  }
  for (const route of ["/session", "/event", `${path}/event`, "/nothing"])
    expect((await fetch(`${server.url}${route}`)).status, route).toBe(401)
  for (const route of ["/health", "/openapi.json", "/docs"])
    expect((await fetch(`${server.url}${route}`)).status, route).toBe(200)
})

test("delays the answers to failures, and only those", async () => {
  expect([1, 2, 3].map(failureDelay)).toEqual([25, 50, 100])
  expect(failureDelay(1_000_000)).toBe(5_000)
  const { server, get } = await setUp()
  for (let count = 0; count < 3; count += 1) await fetch(`${server.url}/session`)
  const order: string[] = []
  const wrong = fetch(`${server.url}/session`).then(() => order.push("wrong"))
  await get("/session").then(() => order.push("right"))
  await wrong
  expect(order).toEqual(["right", "wrong"])
})

test("requires the scope of each route", async () => {
  const { get, post, request, session, directory } = await setUp()
  const path = await session()
  expect((await get(path, { scope: "read" })).status).toBe(200)
  for (const scope of ["read", "reply"] as const) {
    expect((await post("/session", { directory }, { scope })).body.error).toMatchObject({
      code: "scope.insufficient",
      details: { required: "run", scope },
    })
    expect((await post(`${path}/input`, { text: "Hi" }, { scope })).status).toBe(403)
    expect((await post(`${path}/interrupt`, {}, { scope })).status).toBe(403)
  }
  expect((await request("PATCH", path, { scope: "reply", body: { title: "x" } })).status).toBe(403)
  expect((await request("DELETE", path, { scope: "run" })).status).toBe(403)
  expect((await request("DELETE", path, { scope: "admin" })).status).toBe(204)
})

test("refuses other hosts on every route, so that a domain cannot be rebound", async () => {
  const { server } = await setUp()
  const { host } = new URL(server.url)
  for (const path of ["/session", "/event", "/health", "/docs"]) {
    for (const wrong of [
      "example.com",
      "example.com:80",
      "127.0.0.1.example.com",
      "localhost.example.com",
      "10.0.0.1",
    ])
      expect(await raw(server.url, `GET ${path}`, { host: wrong, authorization }), wrong).toBe(403)
  }
  for (const right of [host, "localhost", "LOCALHOST:1", "[::1]:80"])
    expect(await raw(server.url, "GET /session", { host: right, authorization }), right).toBe(200)
})

test("refuses pages of other origins on every route, and sends no CORS headers", async () => {
  const { get, request, session } = await setUp()
  const path = await session()
  const others = [
    "https://example.com",
    "null",
    "http://localhost:1",
    "http://127.0.0.1.example.com",
    "file://",
  ]
  for (const origin of others)
    for (const route of ["/session", "/event", `${path}/event`, "/health", "/docs"]) {
      const { status, headers, body } = await get(route, { headers: { origin } })
      expect([status, body.error.code], `${origin} ${route}`).toEqual([403, "origin.forbidden"])
      expect(headers.get("access-control-allow-origin")).toBeNull()
    }
  const preflight = await request("OPTIONS", "/session", { headers: { origin: "https://example.com" } })
  expect(preflight.status).toBe(403)
})

test("answers pages of an allowed origin", async () => {
  const origin = "https://tackle.example.com"
  const { server, get } = await setUp([], { origins: [origin] })
  const { headers, status } = await get("/session", { headers: { origin } })
  expect([status, headers.get("access-control-allow-origin")]).toEqual([200, origin])
  const preflight = await fetch(`${server.url}/session`, { method: "OPTIONS", headers: { origin } })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get("access-control-allow-headers")).toContain("authorization")
  expect(await raw(server.url, "GET /health", { host: "tackle.example.com" })).toBe(200)
  expect((await get("/session", { headers: { origin: "https://example.com" } })).status).toBe(403)
})

test("accepts only JSON bodies", async () => {
  const { post, server, directory } = await setUp()
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/jsonx",
    "",
  ]) {
    const { status, body } = await post("/session", JSON.stringify({ directory }), {
      headers: { "content-type": type },
    })
    expect([status, body.error.code], type).toEqual([415, "content-type.unsupported"])
  }
  const { host } = new URL(server.url)
  expect(await raw(server.url, "POST /session", { host, authorization, "content-length": "2" }, "{}")).toBe(
    415,
  )
  for (const invalid of [
    "{",
    "",
    "null",
    "[]",
    '"x"',
    '{"directory":1}',
    "{}",
    '{"directory":"/","unknown":1}',
  ]) {
    const { status, body } = await post("/session", invalid)
    expect([status, body.error?.code.split(".")[1]], invalid).toEqual([400, "invalid"])
  }
})

test("refuses a body above the limit, with and without a length", async () => {
  const { post, server, directory } = await setUp([], { maxBodyBytes: 1_000 })
  const large = { directory, title: "x".repeat(1_000) }
  expect((await post("/session", large)).body.error.code).toBe("body.too-large")
  const { host } = new URL(server.url)
  const headers = { host, authorization, "content-type": "application/json" }
  expect(await raw(server.url, "POST /session", { ...headers, "content-length": "20000000000" })).toBe(413)
  const chunk = `${(2_000).toString(16)}\r\n${"x".repeat(2_000)}\r\n`
  expect(await raw(server.url, "POST /session", { ...headers, "transfer-encoding": "chunked" }, chunk)).toBe(
    413,
  )
  expect((await post("/session", { directory })).status).toBe(201)
})

test("survives values that are nested deeply", async () => {
  const { post, get, directory } = await setUp()
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`
  const place = JSON.stringify(directory)
  for (const [path, body] of [
    ["/session", deep],
    ["/session", `{"directory":${deep}}`],
    ["/session/import", `{"directory":${place},"archive":${deep}}`],
    ["/tool/read/call", `{"directory":${place},"arguments":{"filePath":${deep}}}`],
  ] as const)
    expect((await post(path, body)).status, path).toBe(400)
  expect((await get("/session")).status).toBe(200)
})

test("closes connections whose headers do not arrive or are too large", async () => {
  const { server } = await setUp([], { headersTimeoutMs: 100 })
  const { host } = new URL(server.url)
  expect(await exchange(server.url, `GET /health HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `)).toContain("408")
  const huge = `GET /health HTTP/1.1\r\nHost: ${host}\r\nX-Large: ${"x".repeat(40_000)}\r\n\r\n`
  expect(await exchange(server.url, huge)).toContain("431")
})

test("closes connections whose body does not arrive, and reports no problem if the client leaves", async () => {
  const { server, get, problems } = await setUp([], { requestTimeoutMs: 100 })
  const { host, port, hostname } = new URL(server.url)
  const headers = `Host: ${host}\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 50`
  const begun = `POST /session HTTP/1.1\r\n${headers}\r\n\r\n{"directory":`
  expect(await exchange(server.url, begun)).toContain("408")
  const leaving = connect(Number(port), hostname)
  await new Promise((resolve) => leaving.write(begun, resolve))
  leaving.resetAndDestroy()
  expect((await get("/session")).status).toBe(200)
  expect(problems).toEqual([])
})

test("limits the number of connections, and serves again when they are closed", async () => {
  const { server, get } = await setUp([], { maxConnections: 20 })
  const { port, hostname } = new URL(server.url)
  const open = Array.from({ length: 300 }, () => connect(Number(port), hostname).on("error", () => {}))
  const closed = open.map((socket) => new Promise((resolve) => socket.once("close", resolve)))
  await Promise.race(closed)
  for (const socket of open) socket.destroy()
  await Promise.all(closed)
  await expect.poll(async () => (await get("/session").catch(() => undefined))?.status).toBe(200)
})

test("sends headers that forbid scripts, frames and caching", async () => {
  const { server } = await setUp()
  const page = await fetch(`${server.url}/docs`)
  expect(page.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+';/,
  )
  expect(page.headers.get("x-content-type-options")).toBe("nosniff")
  expect(page.headers.get("cache-control")).toBe("no-store")
  const html = await page.text()
  expect(html).not.toMatch(/<script|<link|src=|style="|https?:/)
  expect(html).toContain("POST /session/{id}/input")
})

test("creates the token file for the user alone, and refuses a file that others can read", async () => {
  const project = await temporaryProject({})
  const path = project.path("data/server-token")
  const [first] = readTokenFile(path)
  expect(first).toMatchObject({ scope: "admin" })
  expect(Buffer.from(first?.token ?? "", "base64url")).toHaveLength(32)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(readTokenFile(path)).toEqual([first])
  expect((await readFile(path, "utf8")).trim()).toBe(first?.token)
  await chmod(path, 0o644)
  expect(() => readTokenFile(path)).toThrow(`chmod 600 ${path}`)
  await chmod(path, 0o600)
  await writeFile(path, `# phone\nread ${tokens.read}\n\nrun ${tokens.run}\n`)
  expect(readTokenFile(path)).toEqual([
    { scope: "read", token: tokens.read },
    { scope: "run", token: tokens.run },
  ])
  for (const [content, problem] of [
    ["", "no token"],
    ["short", "too short"],
    [`owner ${tokens.read}`, "expected a token"],
    [`read ${tokens.read} x`, "expected a token"],
  ] as const) {
    await writeFile(path, content)
    expect(() => readTokenFile(path), content).toThrow(problem)
  }
  await project.remove()
})

test("the answer to a link out of the roots does not reveal its target", async () => {
  const { directory, request } = await setUp()
  const { directory: target } = await temporaryProject({})
  const link = join(directory, "out")
  await symlink(target, link)
  const encoded = encodeURIComponent(link)
  const answers = [
    await request("POST", "/session", { body: { directory: link } }),
    await request("GET", `/agent?directory=${encoded}`),
    await request("GET", "/opencode/session", { headers: { "x-opencode-directory": encoded } }),
  ]
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 403, body: { error: { code: "directory.forbidden" } } })
    expect(answer.body.error.message).not.toContain(target)
  }
})

test("a session of OpenCode's client has only a known parent", async () => {
  const { request } = await setUp()
  for (const parentID of ["__proto__", "ses_unknown"])
    expect(await request("POST", "/opencode/session", { body: { parentID } })).toMatchObject({
      status: 404,
      body: { error: { code: "session.unknown" } },
    })
})
