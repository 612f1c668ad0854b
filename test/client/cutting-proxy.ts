import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

/** A TCP proxy whose connections a test can break. */
export interface CuttingProxy extends AsyncDisposable {
  url: string
  /** Number of connections so far. */
  readonly connections: number
  /** Breaks all connections. */
  cut(): void
  /**
   * Breaks each later connection after it has passed on a number of bytes to the client: `first` bytes for the first of
   * them, and `more` bytes more for each next one.
   */
  cutAfter(first: number, more?: number): void
  /** Passes on nothing more on the present connections, and keeps them open. */
  freeze(): void
  /** Breaks all connections, and each later one at once, until `accept`. */
  refuse(): void
  accept(): void
}

/** Starts a proxy on loopback in front of a server. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { port } = new URL(target)
  const sockets = new Set<Socket>()
  let nextLimit = () => Number.POSITIVE_INFINITY
  let isRefusing = false
  let connections = 0

  const server = createServer((client) => {
    connections += 1
    if (isRefusing) return client.destroy()
    const upstream = connect(Number(port), "127.0.0.1")
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    const limit = nextLimit()
    let passed = 0
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on("error", end)
      socket.on("close", () => {
        sockets.delete(socket)
        end()
      })
    }
    client.pipe(upstream)
    upstream.on("data", (chunk) => {
      const part = chunk.subarray(0, Math.max(0, limit - passed))
      passed += chunk.length
      if (part.length === chunk.length) client.write(part)
      else client.write(part, end)
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")

  function cut(): void {
    for (const socket of sockets) socket.destroy()
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections
    },
    cut,
    freeze() {
      for (const socket of sockets) {
        socket.unpipe()
        socket.pause()
      }
    },
    cutAfter(first, more = 0) {
      let limit = first - more
      nextLimit = () => {
        limit += more
        return limit
      }
    },
    refuse() {
      isRefusing = true
      cut()
    },
    accept() {
      isRefusing = false
    },
    async [Symbol.asyncDispose]() {
      server.close()
      cut()
      await once(server, "close")
    },
  }
}
