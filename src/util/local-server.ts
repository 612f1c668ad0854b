import { createHash, timingSafeEqual } from "node:crypto"
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http"
import { errorMessage, systemCode, UsageError } from "./errors.ts"

/** The address to listen on, and the request handler. */
export interface LocalServerOptions {
  /** The subject of error messages, such as `The gateway`. */
  name: string
  /** Address to listen on. Any address except loopback requires a key. */
  host: string
  /** Port to listen on. 0 selects a free port. */
  port: number
  /**
   * Path of a Unix socket to listen on, instead of host and port. Only the user who started the server can connect to
   * it.
   */
  socket?: string
  /** The key that clients must send. `answer` checks it. */
  key: string | undefined
  /** Limits for Node's server. */
  limits?: ServerOptions
  /** Handles a request. If the promise rejects, the connection is closed. */
  answer(incoming: IncomingMessage, response: ServerResponse): Promise<void>
  onProblem(error: unknown): void
}

/**
 * Listens for HTTP requests. Throws `UsageError` if the server cannot listen on the address, or if other machines could
 * connect without a key.
 */
export async function startLocalServer(
  options: LocalServerOptions,
): Promise<{ server: Server; origin: string }> {
  const { name, host, key, answer, onProblem } = options
  if (key === undefined && !isLoopback(host))
    throw new UsageError(
      `${name} cannot listen on ${host} without a key, because other machines could connect. Set a key with --key.`,
    )
  const server = createServer(options.limits ?? {}, (incoming, response) => {
    // A client may disconnect at any time, which is not an error.
    incoming.on("error", () => response.destroy())
    response.on("error", () => response.destroy())
    // Without this header, nginx holds back the pieces of a stream.
    response.setHeader("x-accel-buffering", "no")
    answer(incoming, response).catch((error: unknown) => {
      onProblem(error)
      response.destroy()
    })
  })
  const port = await listen(server, options)
  // An error occurs, for example, if the process has no free file descriptor for another connection.
  server.on("error", onProblem)
  const origin = options.socket === undefined ? `http://${hostInUrl(host)}:${port}` : "http://localhost"
  return { server, origin }
}

/** Starts listening and returns the port, or 0 for a socket. */
async function listen(server: Server, { name, host, port, socket }: LocalServerOptions): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  // Other users must not be able to connect between the creation of the socket and the change of its mode.
  const mask = socket === undefined ? undefined : process.umask(0o177)
  if (socket === undefined) server.listen(port, host, resolve)
  else server.listen(socket, resolve)
  if (mask !== undefined) process.umask(mask)
  try {
    await promise
  } catch (error) {
    const isTaken = systemCode(error) === "EADDRINUSE"
    if (socket !== undefined) {
      const why = isTaken
        ? "the file exists. Delete the file if no server uses it, or choose"
        : `${errorMessage(error)}. Choose`
      throw new UsageError(`${name} cannot listen on ${socket}: ${why} another path with --socket.`, error)
    }
    const why = isTaken ? "the port is already in use" : errorMessage(error)
    const isHostWrong = /^(EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN)$/.test(systemCode(error) ?? "")
    const next = isHostWrong ? "address with --host" : "port with --port"
    throw new UsageError(`${name} cannot listen on ${host}:${port}: ${why}. Choose another ${next}.`, error)
  }
  server.off("error", reject)
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : port
}

/** Hosts that refer to this machine, as they appear in URLs. */
export const loopbackHosts: readonly string[] = ["127.0.0.1", "localhost", "[::1]"]

/** Returns true for a listening address in {@link loopbackHosts}. Only this machine can reach such an address. */
export function isLoopback(address: string): boolean {
  return loopbackHosts.includes(hostInUrl(address))
}

/**
 * Returns true if an `Origin` header refers to a page on this machine. Returns false for any other value, such as
 * `null`.
 */
export function isLoopbackOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.origin === origin && loopbackHosts.includes(url.hostname)
}

/** Formats an address for a URL: puts IPv6 addresses in brackets. */
function hostInUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address
}

/** Returns true if an `Authorization` header contains the key as a `Bearer` token. Compares in constant time. */
export function isAuthorized(authorization: string | null | undefined, key: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${key}`))
}
