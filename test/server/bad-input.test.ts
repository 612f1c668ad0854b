import { connect } from "node:net"
import { describe, expect, test } from "vitest"
import { apiDocument } from "../../scripts/api-page.ts"
import { operationsOf } from "../../src/server/reference-page.ts"
import { isComplete } from "../runs.ts"
import { setUp } from "./start-server.ts"

const operations = operationsOf(apiDocument())
const withIds = operations.filter(({ path }) => path.includes("{"))
const withBody = operations.filter(({ operation }) => operation.requestBody)

const badIds = [
  "unknown",
  "__proto__",
  "constructor",
  "..%2f..%2fetc%2fpasswd",
  "%00",
  "%F0%9F%92%A5",
  "x".repeat(2_000),
]

/** Opens a connection, sends the text, and resolves when the server has closed it. */
function send(url: URL, text: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = connect(Number(url.port), url.hostname)
  socket.on("error", () => {})
  socket.on("close", () => resolve())
  socket.resume()
  if (text !== "") socket.write(text)
  return promise
}

describe("every operation of the document", () => {
  test("refuses ids that do not exist", async () => {
    const { request, problems, session } = await setUp()
    const path = await session()
    const answered: string[] = []
    for (const { method, path: route } of withIds)
      for (const id of badIds) {
        const unknown = route.replace(/\{\w+\}/g, id)
        // An existing session with another unknown id. A client of the AI SDK chooses the id of its chat.
        const below = route.replace(/^\/session\/\{id\}(?!\/chat)/, path).replace(/\{\w+\}/g, id)
        for (const url of new Set([unknown, ...(route.split("{").length > 2 ? [below] : [])])) {
          const body = method === "GET" || method === "DELETE" ? undefined : {}
          const { status, body: answer } = await request(method, url, { body })
          if (status >= 400 && status < 500 && answer.error?.code && answer.error.message) continue
          answered.push(`${method} ${url.slice(0, 100)}: ${status}`)
        }
      }
    expect(answered).toEqual([])
    expect(problems).toEqual([])
  })

  test("refuses a body that is not the JSON object that it needs", async () => {
    const { request, problems, session } = await setUp()
    const path = await session()
    for (const { method, path: route } of withBody)
      for (const body of ["{", "null", "[]", '"text"', "1", "\0", "{}}", '{"unknown field":1}']) {
        const url = route.replace("/session/{id}", path).replace(/\{\w+\}/g, "unknown")
        const { status, body: answer } = await request(method, url, { body })
        expect([Math.floor(status / 100), typeof answer.error?.message], `${method} ${url} ${body}`).toEqual([
          4,
          "string",
        ])
      }
    expect(problems).toEqual([])
  })

  test("needs a token, from a host and an origin that are served", async () => {
    const { server, session, get, problems } = await setUp()
    const path = await session()
    const open = ["/health", "/openapi.json", "/docs", "/login", "/logout"]
    for (const { method, path: route } of operations) {
      const url = `${server.url}${route.replace("/session/{id}", path).replace(/\{\w+\}/g, "unknown")}`
      const headers = { "content-type": "application/json" }
      // A success ends the delays that failures cause.
      expect((await get("/session")).status).toBe(200)
      if (!open.includes(route))
        expect((await fetch(url, { method, headers })).status, `${method} ${route}`).toBe(401)
      const origin = await fetch(url, { method, headers: { ...headers, origin: "https://example.com" } })
      expect(
        [origin.status, origin.headers.get("access-control-allow-origin")],
        `${method} ${route}`,
      ).toEqual([403, null])
    }
    expect(problems).toEqual([])
  })

  test("refuses a directory that is not served", async () => {
    const { request, problems, directory } = await setUp()
    const placed = operations.filter(({ operation }) =>
      operation.parameters?.some((parameter) => "name" in parameter && parameter.name === "directory"),
    )
    expect(placed.length).toBeGreaterThan(5)
    for (const { method, path: route } of placed)
      for (const given of ["/", "/etc", `${directory}/..`, "..", "relative", "\0"]) {
        const url = `${route}?directory=${encodeURIComponent(given)}`
        const { status, body } = await request(method, url)
        expect([400, 403], `${method} ${url}: ${status}`).toContain(status)
        expect(body.error.message).toEqual(expect.any(String))
      }
    expect(problems).toEqual([])
  })
})

const waves = isComplete ? 10 : 3

test(`closes ${waves},000 connections that send no complete headers, and serves again`, {
  timeout: 60_000,
}, async () => {
  const { server, get, problems } = await setUp([], { headersTimeoutMs: 100 })
  const url = new URL(server.url)
  const texts = ["", "G", `GET /session HTTP/1.1\r\nHost: ${url.host}\r\nX-Slow: `]
  for (let wave = 0; wave < waves; wave += 1)
    await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => send(url, texts[index % texts.length] ?? "")),
    )
  await expect.poll(async () => (await get("/session").catch(() => undefined))?.status).toBe(200)
  expect(problems).toEqual([])
})
