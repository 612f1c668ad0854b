import type { LookupAddress } from "node:dns"
import { lookup } from "node:dns/promises"
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import { connect, isIP, type LookupFunction } from "node:net"
import type { Duplex } from "node:stream"
import { pipeline } from "node:stream"
import { isPrivateAddress } from "../util/private-address.ts"
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
 * requests. Listens on the Unix socket if `socketPath` is given, and otherwise on a free port on 127.0.0.1.
 *
 * The proxy filters by requested host name, and resolves the name itself. It does not connect to addresses outside the
 * public internet unless the filter allows them. It does not inspect encrypted content, so an allowed host that also
 * serves other hosts can be used to reach these hosts.
 */
export async function startHostProxy(filter: HostFilter, socketPath?: string): Promise<HostProxy> {
  const open = new Set<Duplex>()
  const server = createServer(async (incoming, outgoing) => {
    const target = plainTarget(incoming)
    if (!target) return void outgoing.writeHead(400).end("This is a proxy.\n")
    const host = hostName(target.hostname)
    const found = await findAddresses(host, filter)
    if ("refusal" in found)
      return void outgoing.writeHead(403, { "x-proxy-error": "blocked-by-rule" }).end(found.refusal)
    if (found.addresses.length === 0) return void outgoing.writeHead(502).end()
    if (outgoing.destroyed) return
    const { host: _, "proxy-connection": __, "proxy-authorization": ___, ...headers } = incoming.headers
    const forward = request(
      target,
      {
        method: incoming.method,
        headers: { ...headers, host: target.host },
        lookup: fixedLookup(found.addresses),
      },
      (answer) => {
        if (outgoing.destroyed || !startAnswer(answer, outgoing)) {
          answer.destroy()
          outgoing.destroy()
        } else pipeline(answer, outgoing, ignore)
      },
    )
    forward.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()))
    outgoing.once("close", () => forward.destroy())
    pipeline(incoming, forward, ignore)
  })
  server.on("connect", async (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on("error", ignore)
    const target = tunnelTarget(incoming.url ?? "")
    if (!target) return void client.end("HTTP/1.1 400 Bad Request\r\n\r\n")
    const { host, port } = target
    const found = await findAddresses(host, filter)
    if ("refusal" in found) {
      return void client.end(
        `HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-rule\r\n\r\n${found.refusal}`,
      )
    }
    if (found.addresses.length === 0) return void client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")
    if (client.destroyed) return
    const remote = connect({ port, host, lookup: fixedLookup(found.addresses) }, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n")
      remote.write(head)
      pipeline(client, remote, client, ignore)
    })
    track(remote)
    remote.once("error", () => client.destroy())
    client.once("close", () => remote.destroy())
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

/** Copies the status and the headers of a response. Returns false if Node.js cannot send them. */
function startAnswer({ statusCode = 502, headers }: IncomingMessage, outgoing: ServerResponse): boolean {
  try {
    outgoing.writeHead(statusCode, headers)
    return true
  } catch {
    // Node.js rejects, for example, the status 099, or trailers after a body of known length.
    return false
  }
}

/**
 * Returns the addresses of a host to which the proxy may connect, or the reason why the proxy refuses to connect.
 * Returns an empty list if the host cannot be resolved. The caller connects to these addresses, so that a second lookup
 * cannot return other addresses.
 */
async function findAddresses(
  host: string,
  filter: HostFilter,
): Promise<{ addresses: LookupAddress[] } | { refusal: string }> {
  if (!filter.allows(host)) return { refusal: `No rule allows the host ${host} (permission "network").\n` }
  const { allowsPrivate = (name) => name === host && isIP(name) !== 0 } = filter
  const all = await resolveHost(host)
  const addresses = all.filter(
    ({ address }) => !isPrivateAddress(address) || allowsPrivate(host) || allowsPrivate(address),
  )
  if (addresses.length > 0 || all.length === 0) return { addresses }
  const named = all.map(({ address }) => address).join(", ")
  const addressed = all.length === 1 ? `the address ${named}, which is` : `the addresses ${named}, which are`
  return {
    refusal: `The host ${host} has ${addressed} not on the public internet. No rule allows this host (permission "private_network").\n`,
  }
}

async function resolveHost(host: string): Promise<LookupAddress[]> {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  // Connecting to a host that cannot be resolved fails like any other connection.
  return lookup(host, { all: true }).catch(() => [])
}

/** Returns a lookup with a fixed result. */
function fixedLookup(addresses: readonly LookupAddress[]): LookupFunction {
  return (_, { all }, callback) => {
    const [first] = addresses
    if (all) callback(null, [...addresses])
    else callback(null, first?.address ?? "", first?.family)
  }
}

function listen(server: Server, path: string | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  if (path === undefined) server.listen(0, "127.0.0.1", resolve)
  else server.listen(path, resolve)
  return promise
}

/** Returns the target of a plain proxy request, without credentials. Returns undefined for other requests. */
function plainTarget({ url = "" }: IncomingMessage): URL | undefined {
  const target = URL.parse(url)
  if (target?.protocol !== "http:") return undefined
  // `request` throws for credentials that are not UTF-8. Programs send credentials in a header instead.
  target.username = ""
  target.password = ""
  return target
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

/** Ignores an error of a connection. Both sockets are closed, so the client and the host notice the failure. */
function ignore(): void {}
