import { readFileSync } from "node:fs"
import { createServer, type RequestListener, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { afterEach, expect, test } from "vitest"
import { httpGet } from "../../../src/tools/web/http-get.ts"

const fixtures = join(import.meta.dirname, "../../model/fixtures")
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function listen(server: Server): Promise<number> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(closed))
  })
  return (server.address() as AddressInfo).port
}

const serve = (listener: RequestListener) => listen(createServer(listener))

function get(url: string, options: { maxBytes?: number; signal?: AbortSignal } = {}) {
  return httpGet({
    url: new URL(url),
    addresses: [{ address: "127.0.0.1", family: 4 }],
    headers: {},
    maxBytes: 1000,
    signal: new AbortController().signal,
    ...options,
  })
}

test("connects to the given address and sends the host name", async () => {
  const port = await serve((request, response) => response.end(request.headers.host))
  const { body } = await get(`http://no.such.host.invalid:${port}/`)
  expect(body.toString()).toBe(`no.such.host.invalid:${port}`)
})

test("checks the certificate against the host name", async () => {
  const cert = readFileSync(join(fixtures, "cert.pem"), "utf8")
  const before = getCACertificates("default")
  setDefaultCACertificates([...before, cert])
  cleanups.push(() => setDefaultCACertificates(before))
  const names: unknown[] = []
  const options = { cert, key: readFileSync(join(fixtures, "key.pem")) }
  const server = createTlsServer(options, (_, response) => response.end("safe"))
  server.on("secureConnection", (socket) => names.push(socket.servername))
  const port = await listen(server)
  expect((await get(`https://localhost:${port}/`)).body.toString()).toBe("safe")
  expect(names).toEqual(["localhost"])
  await expect(get(`https://other.invalid:${port}/`)).rejects.toMatchObject({ code: "webfetch.network" })
})

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
])(
  "a body compressed by %s is decompressed, and its decompressed size is limited",
  async (encoding, compress) => {
    const port = await serve((request, response) => {
      response.setHeader("content-encoding", encoding)
      response.end(compress("x".repeat(request.url === "/bomb" ? 5_000_000 : 1000)))
    })
    expect((await get(`http://h:${port}/`)).body.length).toBe(1000)
    await expect(get(`http://h:${port}/bomb`)).rejects.toMatchObject({ code: "webfetch.size" })
  },
)

test("rejects a body that is too large without reading all of it", async () => {
  const port = await serve((request, response) => {
    if (request.url === "/announced") response.setHeader("content-length", 1001)
    response.write("x".repeat(1001))
  })
  await expect(get(`http://h:${port}/announced`)).rejects.toMatchObject({ code: "webfetch.size" })
  await expect(get(`http://h:${port}/streamed`)).rejects.toMatchObject({ code: "webfetch.size" })
})

test("reports an incomplete body, an unknown compression and a closed port", async () => {
  const port = await serve((request, response) => {
    if (request.url === "/zip") response.setHeader("content-encoding", "zip")
    else response.setHeader("content-length", 10)
    response.write("x")
    setImmediate(() => response.destroy())
  })
  await expect(get(`http://h:${port}/`)).rejects.toMatchObject({ code: "webfetch.network" })
  await expect(get(`http://h:${port}/zip`)).rejects.toMatchObject({ code: "webfetch.content" })
  await expect(get("http://h:1/")).rejects.toMatchObject({
    code: "webfetch.network",
    message: expect.stringContaining("ECONNREFUSED"),
  })
})

test.each(["/before-the-answer", "/within-it"])(
  "an abort ends it with the signal's reason: %s",
  async (path) => {
    const aborting = new AbortController()
    const port = await serve((request, response) => {
      if (request.url === "/within-it") response.write("x")
      setImmediate(() => aborting.abort())
    })
    const { signal } = aborting
    await expect(get(`http://h:${port}${path}`, { signal })).rejects.toMatchObject({ code: "aborted" })
    await expect(get(`http://h:${port}${path}`, { signal })).rejects.toMatchObject({ code: "aborted" })
  },
)

test("does not read the body of a redirect", async () => {
  const port = await serve((_, response) => {
    response.writeHead(302, { location: "/next" }).write("x".repeat(5000))
  })
  expect(await get(`http://h:${port}/`)).toMatchObject({ status: 302, headers: { location: "/next" } })
})
