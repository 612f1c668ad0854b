import { readFileSync } from "node:fs"
import { createServer as createHttpServer, request, type Server } from "node:http"
import { createServer as createHttpsServer } from "node:https"
import { type AddressInfo, connect } from "node:net"
import { join } from "node:path"
import { afterEach, describe, expect, test } from "vitest"
import { httpFetch } from "../../src/model/http-fetch.ts"
import { useNetworkSettings } from "../../src/model/proxy.ts"
import { UsageError } from "../../src/util/errors.ts"
import { startServer } from "./server.ts"

const cert = join(import.meta.dirname, "fixtures/cert.pem")
const key = join(import.meta.dirname, "fixtures/key.pem")

const cleanups: (() => void | Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function use(environment: Record<string, string>): Promise<void> {
  cleanups.push(await useNetworkSettings(environment))
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(() => closed()))
  })
  return (server.address() as AddressInfo).port
}

/** Starts a proxy that connects every name to `port` of this machine, and records the requests. */
async function startProxy(port: number): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const proxy = createHttpServer()
  proxy.on("connect", ({ url = "" }, client, head) => {
    asked.push(url)
    const target = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n")
      target.write(head)
      target.pipe(client).pipe(target)
    })
    const end = () => {
      target.destroy()
      client.destroy()
    }
    target.on("error", end).on("close", end)
    client.on("error", end).on("close", end)
  })
  proxy.on("request", ({ url = "", headers }, response) => {
    const { host, pathname } = new URL(url)
    asked.push(`${host}:80`)
    const forwarded = request({ port, path: pathname, headers }, (answer) => answer.pipe(response))
    forwarded.on("error", () => response.destroy())
    forwarded.end()
  })
  return { url: `http://127.0.0.1:${await listen(proxy)}`, asked }
}

async function startTls(): Promise<number> {
  const options = { cert: readFileSync(cert), key: readFileSync(key) }
  return listen(createHttpsServer(options, (_, response) => void response.end("secure")) as unknown as Server)
}

describe.each([
  ["the global fetch", fetch],
  ["httpFetch", httpFetch],
])("%s", (_, ask) => {
  test("sends requests through HTTPS_PROXY and HTTP_PROXY until restored", async () => {
    await using server = await startServer((response) => void response.end("proxied"))
    const proxy = await startProxy(server.port)
    const restore = await useNetworkSettings({ HTTP_PROXY: proxy.url, https_proxy: proxy.url })
    try {
      expect(await (await ask("http://models.example/v1")).text()).toBe("proxied")
      await expect(ask("https://models.example/v1")).rejects.toThrow()
      expect(proxy.asked).toEqual(["models.example:80", "models.example:443"])
    } finally {
      restore()
    }
    await expect(ask("http://models.example/v1")).rejects.toThrow()
    expect(proxy.asked.length).toBe(2)
  })

  test("connects directly to this machine and hosts in NO_PROXY", async () => {
    await using server = await startServer((response) => void response.end("direct"))
    const proxy = await startProxy(server.port)
    await use({ HTTP_PROXY: proxy.url, NO_PROXY: "inside.example" })
    expect(await (await ask(`${server.origin}/v1`)).text()).toBe("direct")
    expect(await (await ask(`http://localhost:${server.port}/v1`)).text()).toBe("direct")
    await expect(ask("http://inside.example/")).rejects.toThrow()
    expect(proxy.asked).toEqual([])
  })

  test("NO_PROXY=* excludes everything", async () => {
    const proxy = await startProxy(1)
    await use({ HTTP_PROXY: proxy.url, NO_PROXY: "*" })
    await expect(ask("http://models.example/")).rejects.toThrow()
    expect(proxy.asked).toEqual([])
  })

  test("trusts certificates of SSL_CERT_FILE, also through a proxy", async () => {
    const port = await startTls()
    const url = `https://127.0.0.1:${port}/`
    await expect(ask(url)).rejects.toThrow()
    const proxy = await startProxy(port)
    await use({ SSL_CERT_FILE: cert, HTTPS_PROXY: proxy.url })
    expect(await (await ask(url)).text()).toBe("secure")
    await expect(ask("https://models.example/")).rejects.toMatchObject({
      cause: { code: "ERR_TLS_CERT_ALTNAME_INVALID" },
    })
    expect(proxy.asked).toEqual(["models.example:443"])
  })
})

test("names an invalid proxy or file", async () => {
  await expect(useNetworkSettings({ HTTPS_PROXY: "http://a b" })).rejects.toThrow(UsageError)
  await expect(useNetworkSettings({ SSL_CERT_FILE: "/nowhere.pem" })).rejects.toThrow(
    "SSL_CERT_FILE (/nowhere.pem)",
  )
  await expect(useNetworkSettings({ SSL_CERT_FILE: join(import.meta.dirname, "server.ts") })).rejects.toThrow(
    UsageError,
  )
})

test("does nothing without the variables", async () => {
  await use({})
  await using server = await startServer((response) => void response.end("direct"))
  expect(await (await fetch(server.origin)).text()).toBe("direct")
})
