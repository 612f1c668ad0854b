import { createServer, type IncomingMessage, request, type Server } from "node:http"
import { connect } from "node:net"
import type { Duplex } from "node:stream"
import { pipeline } from "node:stream"
import type { HostFilter } from "./bounds.ts"

/** A relay that connects a confined command to the proxy. */
export interface Relay {
  /** Program and arguments. The relay listens inside the network namespace and forwards to the proxy's Unix socket. */
  argv: readonly string[]
  /** Port of the relay on 127.0.0.1. */
  port: number
  /** Environment variables that point programs to the proxy. */
  environment: Readonly<Record<string, string>>
}

/** A proxy that forwards connections to allowed hosts. */
export interface HostProxy {
  /** A loopback port, or the path of a Unix socket. */
  readonly address: number | string
  close(): Promise<void>
}

/**
 * Starts an HTTP proxy outside the sandbox. It supports `CONNECT` for encrypted connections and forwards plain
 * requests. Listens on the Unix socket if `socketPath` is given, and otherwise on a free port of 127.0.0.1.
 *
 * The proxy filters by requested host name and does not inspect encrypted content. An allowed host that also serves
 * other hosts can therefore be used to reach them.
 */
export async function startHostProxy(filter: HostFilter, socketPath?: string): Promise<HostProxy> {
  const open = new Set<Duplex>()
  const server = createServer((incoming, outgoing) => {
    const target = plainTarget(incoming)
    if (!target) return void outgoing.writeHead(400).end("This is a proxy.\n")
    if (!filter.allows(hostName(target.hostname)))
      return void outgoing
        .writeHead(403, { "x-proxy-error": "blocked-by-rule" })
        .end(refusal(target.hostname))
    const { host: _, "proxy-connection": __, "proxy-authorization": ___, ...headers } = incoming.headers
    const forward = request(
      target,
      { method: incoming.method, headers: { ...headers, host: target.host } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        pipeline(answer, outgoing, ignore)
      },
    )
    forward.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()))
    pipeline(incoming, forward, ignore)
  })
  server.on("connect", (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    const target = tunnelTarget(incoming.url ?? "")
    if (!target) return void client.end("HTTP/1.1 400 Bad Request\r\n\r\n")
    if (!filter.allows(target.host)) {
      return void client.end(
        `HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-rule\r\n\r\n${refusal(target.host)}`,
      )
    }
    const remote = connect(target.port, target.host, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n")
      remote.write(head)
      pipeline(client, remote, client, ignore)
    })
    track(remote)
    remote.once("error", () => client.destroy())
    client.once("error", () => remote.destroy())
  })
  server.on("connection", track)

  function track(socket: Duplex): void {
    open.add(socket)
    socket.once("close", () => open.delete(socket))
  }

  await listen(server, socketPath)
  // The proxy does not keep the process alive. A running command does.
  server.unref()
  const address = server.address()
  return {
    address: typeof address === "object" && address !== null ? address.port : (socketPath ?? ""),
    close() {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function listen(server: Server, path: string | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  if (path === undefined) server.listen(0, "127.0.0.1", resolve)
  else server.listen(path, resolve)
  return promise
}

/** Returns the target of a plain proxy request. Returns undefined for other requests. */
function plainTarget({ url = "" }: IncomingMessage): URL | undefined {
  const target = URL.parse(url)
  return target?.protocol === "http:" ? target : undefined
}

/**
 * Returns the target of a `CONNECT` request. Parses it as a URL, so that the filter and the connection use the same
 * host.
 */
function tunnelTarget(authority: string): { host: string; port: number } | undefined {
  const port = /:(\d{1,5})$/.exec(authority)?.[1]
  const url = port === undefined ? null : URL.parse(`https://${authority}/`)
  if (url?.username !== "" || url.password !== "" || url.pathname !== "/") return undefined
  return { host: hostName(url.hostname), port: Number(port) }
}

function hostName(name: string): string {
  return name.toLowerCase().replace(/^\[|\]$|\.$/g, "")
}

function refusal(host: string): string {
  return `No rule allows the host ${host} (permission "network").\n`
}

/** Ignores an error after which both sockets are closed. Each end of the connection sees the error itself. */
function ignore(): void {}
