import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { gatewayFor } from "./start-gateway.ts"

/** Starts an upstream that answers every request, and a gateway for it. */
async function startGatewayAndUpstream() {
  const reached: string[] = []
  const upstream = createServer((incoming, response) => {
    reached.push(`${incoming.headers.authorization} ${incoming.url}`)
    response.end("{}")
  })
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void upstream.close())
  const { port } = upstream.address() as AddressInfo
  const { gateway } = await gatewayFor(`http://127.0.0.1:${port}/base/v1`, { upstreamKey: "secret" })
  return { reached, url: new URL(gateway.url) }
}

/** Sends a request target as it is. `fetch` would resolve its dots. Returns the status. */
async function send(url: URL, path: string, method = "GET"): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = { "content-type": "application/json" }
  const outgoing = request({ host: url.hostname, port: url.port, path, method, headers }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  })
  outgoing.on("error", reject).end()
  return await promise
}

describe("gateway: routes", () => {
  it.each([
    "/v1/models/../../admin/keys",
    "/v1/models/..",
    "/v1/models/.",
    "/v1/models/...",
    "/v1/models/a/../../../admin",
    "/v1/models/%2e%2e/%2E%2e/admin/keys",
    "/v1/models/.%2e/admin",
    "/v1/models/..%2f..%2fadmin",
    "/v1/models/%2e%2e%2f%2e%2e%2fadmin",
    "/v1/models/%252e%252e%252fadmin",
    "/v1/models/..%5c..%5cadmin",
    "/v1/models/..\\..\\admin",
    "/v1/models/..;/..;/admin",
    "/v1/models/.%09./admin",
    "/v1/models/.%00./admin",
    "/v1/models/%c0%ae%c0%ae/admin",
    "/v1/models/%",
    "/v1/models//admin",
    "/v1/models/",
    "/v1/models/a%3Fadmin=1",
    "/v1/models/a%23b",
    "/v1/models#/../admin",
    "/v1/../admin",
    "//v1/models",
    "/admin/../v1/models",
    "/v1/chat/completions/../../admin",
    "/v1/admin",
    "http://127.0.0.1/v1/models",
    "*",
  ])("does not forward GET %s", async (path) => {
    const { reached, url } = await startGatewayAndUpstream()
    expect(await send(url, path)).toBe(404)
    expect(reached).toEqual([])
  })

  it.each([
    ["DELETE", "/v1/models/m"],
    ["HEAD", "/v1/models"],
    ["OPTIONS", "/v1/models"],
    ["POST", "/v1/models"],
    ["POST", "/v1/models/../chat/completions"],
    ["GET", "/v1/chat/completions"],
    ["POST", "/v1/chat%2fcompletions"],
  ])("does not forward %s %s", async (method, path) => {
    const { reached, url } = await startGatewayAndUpstream()
    expect(await send(url, path, method)).toBe(404)
    expect(reached).toEqual([])
  })

  it.each([
    ["/v1/models", "/base/v1/models"],
    ["/v1/models?limit=2", "/base/v1/models"],
    ["/v1/%6dodels", "/base/v1/models"],
    ["/v1/models/gpt-4.1", "/base/v1/models/gpt-4.1"],
    ["/v1/models/org/model..v2", "/base/v1/models/org/model..v2"],
    ["/v1/models/org%2Fmodel", "/base/v1/models/org%2Fmodel"],
    ["/v1/models/ft:gpt-4o:acme::id", "/base/v1/models/ft:gpt-4o:acme::id"],
    ["/v1/models/@cf/meta/llama-3", "/base/v1/models/@cf/meta/llama-3"],
  ])("forwards %s", async (path, forwarded) => {
    const { reached, url } = await startGatewayAndUpstream()
    expect(await send(url, path)).toBe(200)
    expect(reached).toEqual([`Bearer secret ${forwarded}`])
  })
})
