import { request as httpRequest } from "node:http"
import OpenAI from "openai"
import { describe, expect, test } from "vitest"
import { failure, gatewayFor, messages, setUp } from "./start-gateway.ts"

describe("gateway: access", () => {
  /** Sends a request with only these headers. Returns the status. */
  async function statusOf(url: string, headers: Record<string, string>, body = "{}"): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const sent = httpRequest(`${url}/chat/completions`, { method: "POST", headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on("error", reject)
    sent.end(body)
    return await promise
  }
  const json = { "content-type": "application/json" }

  test("accepts only the key if one is set, and does not send it upstream", async () => {
    const { client, gateway, upstream } = await setUp([{ text: "Hi." }], { key: "sesame" })
    expect(await failure(client.models.list())).toMatchObject({ status: 401, code: "invalid_api_key" })
    const known = new OpenAI({ baseURL: gateway.url, apiKey: "sesame", maxRetries: 0 })
    await known.chat.completions.create({ model: "m", messages })
    expect(upstream.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  test("refuses requests of web pages", async () => {
    const { gateway } = await setUp([])
    expect(await statusOf(gateway.url, { ...json, host: "rebound.example.com" })).toBe(403)
    expect(await statusOf(gateway.url, { "content-type": "text/plain" })).toBe(415)
    expect(await statusOf(gateway.url, json)).toBe(400)
  })

  test("refuses requests whose origin is not this machine, with and without a key", async () => {
    for (const key of [undefined, "sesame"]) {
      const { gateway } = await setUp([], { key })
      const headers = { ...json, ...(key !== undefined && { authorization: `Bearer ${key}` }) }
      const refused = ["https://page.example.com", "null", "", "http://localhost.example.com", "file://"]
      for (const origin of refused)
        expect(await statusOf(gateway.url, { ...headers, origin }), origin).toBe(403)
      for (const origin of ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"])
        expect(await statusOf(gateway.url, { ...headers, origin }), origin).toBe(400)
    }
  })

  test("refuses a body above the limit", async () => {
    const { gateway } = await setUp([], { maxBodyBytes: 100 })
    expect(await statusOf(gateway.url, json, " ".repeat(101))).toBe(413)
    expect(await statusOf(gateway.url, json, " ".repeat(400_000))).toBe(413)
  })

  test("does not listen on other addresses without a key", async () => {
    await expect(gatewayFor("http://127.0.0.1:1/v1", { host: "0.0.0.0" })).rejects.toThrow("--key")
  })
})
