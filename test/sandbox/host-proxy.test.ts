import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, connect, createServer } from "node:net"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { HostFilter } from "../../src/sandbox/bounds.ts"
import { type HostProxy, startHostProxy } from "../../src/sandbox/host-proxy.ts"

let asked: string[]
let proxy: HostProxy
beforeEach(async () => {
  asked = []
  proxy = await startHostProxy({
    key: "",
    allows: (host) => {
      asked.push(host)
      return host === "127.0.0.2"
    },
  })
})
afterEach(() => proxy.close())

/** Sends a text to the proxy and returns its first answer. */
async function say(text: string): Promise<string> {
  const socket = connect(Number(proxy.address), "127.0.0.1")
  socket.write(text)
  const [first] = await once(socket, "data")
  socket.destroy()
  return String(first)
}

describe("startHostProxy", () => {
  test.each([
    ["CONNECT 127.0.0.3:1 HTTP/1.1", "127.0.0.3"],
    ["CONNECT EXAMPLE.org.:443 HTTP/1.1", "example.org"],
    ["CONNECT 0x7f000003:1 HTTP/1.1", "127.0.0.3"],
    ["CONNECT 2130706435:1 HTTP/1.1", "127.0.0.3"],
    ["CONNECT [::1]:1 HTTP/1.1", "::1"],
    ["GET http://127.0.0.2@evil.test/ HTTP/1.1", "evil.test"],
    ["GET http://evil.test/127.0.0.2 HTTP/1.1", "evil.test"],
  ])("judges %s as the host %s and refuses it", async (line, host) => {
    expect(await say(`${line}\r\nHost: 127.0.0.2\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /)
    expect(asked).toEqual([host])
  })

  test.each([
    "CONNECT 127.0.0.2 HTTP/1.1",
    "CONNECT 127.0.0.2@evil.test:443 HTTP/1.1",
    "CONNECT 127.0.0.2/x:443 HTTP/1.1",
    "CONNECT a%00b:443 HTTP/1.1",
    "CONNECT 127.0.0.2:99999 HTTP/1.1",
    "GET /local HTTP/1.1",
    "GET ftp://127.0.0.2/ HTTP/1.1",
  ])("rejects %s, which is not a proxy request", async (line) => {
    expect(await say(`${line}\r\nHost: 127.0.0.2\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /)
    expect(asked).toEqual([])
  })

  test("tunnels bytes both ways and closes both ends with the proxy", async () => {
    const server = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.2")
    await once(server, "listening")
    const socket = connect(Number(proxy.address), "127.0.0.1")
    socket.write(`CONNECT 127.0.0.2:${(server.address() as AddressInfo).port} HTTP/1.1\r\n\r\n`)
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 200 /)
    socket.write("there and back")
    expect(String((await once(socket, "data"))[0])).toBe("there and back")
    const closed = once(socket, "close")
    await proxy.close()
    await closed
    server.close()
  })

  describe("for a host with a private address", () => {
    async function proxyWith(filter: Partial<HostFilter>) {
      await proxy.close()
      proxy = await startHostProxy({ key: "", allows: () => true, ...filter })
    }

    test.each(["CONNECT localhost:1 HTTP/1.1", "GET http://localhost:1/ HTTP/1.1"])(
      "refuses %s although the name is allowed, and names the permission",
      async (line) => {
        await proxyWith({})
        expect(await say(`${line}\r\nHost: localhost\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 .*private_network/s)
      },
    )

    test.each(["169.254.169.254", "127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "0x7f000001"])(
      "refuses the address %s if only a wildcard allows it",
      async (address) => {
        await proxyWith({ allowsPrivate: () => false })
        expect(await say(`CONNECT ${address}:1 HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /)
      },
    )

    test.each([
      ["the name", "localhost"],
      ["the address", "127.0.0.1"],
    ])("connects if the filter allows %s", async (_, allowed) => {
      const server = createServer((socket) => socket.end("reached")).listen(0, "127.0.0.1")
      await once(server, "listening")
      await proxyWith({ allowsPrivate: (host) => host === allowed })
      const { port } = server.address() as AddressInfo
      expect(await say(`CONNECT localhost:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 /)
      server.close()
    })

    test("returns 502 for a name that does not exist", async () => {
      await proxyWith({})
      expect(await say("CONNECT does-not-exist.invalid:1 HTTP/1.1\r\n\r\n")).toMatch(/^HTTP\/1.1 502 /)
    })
  })

  test("forwards a plain request without proxy headers, and returns 502 for a missing server", async () => {
    const server = createHttpServer((request, response) => response.end(JSON.stringify(request.headers)))
    server.listen(0, "127.0.0.2")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const request = `GET http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: other\r\nProxy-Authorization: secret\r\nX-Own: 1\r\nConnection: close\r\n\r\n`
    const answer = await say(request)
    expect(answer).toContain('"x-own":"1"')
    expect(answer).toContain(`"host":"127.0.0.2:${port}"`)
    expect(answer).not.toContain("secret")
    server.closeAllConnections()
    server.close()
    await once(server, "close")
    expect(await say(request)).toMatch(/^HTTP\/1.1 502 /)
  })

  test("returns 502 for a URL with malformed credentials", async () => {
    expect(await say("GET http://%ff@127.0.0.2:1/ HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(/^HTTP\/1.1 502 /)
  })

  test.each(["099 x", "000 x", "200 OK\r\nTrailer: a\r\nContent-Length: 1"])(
    "closes the connection for the invalid answer %j and continues to serve others",
    async (head) => {
      const server = createServer((socket) => socket.end(`HTTP/1.1 ${head}\r\n\r\nx`)).listen(0, "127.0.0.2")
      await once(server, "listening")
      const socket = connect(Number(proxy.address), "127.0.0.1")
      const { port } = server.address() as AddressInfo
      socket.write(`GET http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`)
      await once(socket.resume(), "close")
      server.close()
      expect(await say("GET /local HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(/^HTTP\/1.1 400 /)
    },
  )

  test("drops the request of a client that leaves before the answer", async () => {
    const socket = connect(Number(proxy.address), "127.0.0.1")
    const server = createServer((remote) => {
      remote.once("data", () => socket.destroy())
      remote.on("error", () => {})
    }).listen(0, "127.0.0.2")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    socket.write(`GET http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`)
    const [remote] = await once(server, "connection")
    await once(remote.resume(), "close")
    server.close()
    expect(await say("GET /local HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(/^HTTP\/1.1 400 /)
  })
})
