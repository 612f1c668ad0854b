import { createHash, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { errorMessage, systemCode, UsageError } from "./errors.ts"

/** The address to listen on, and the request handler. */
export interface LocalServerOptions {
  /** The subject of error messages, such as `The gateway`. */
  name: string
  /** Address to listen on. Any address except loopback requires a key. */
  host: string
  /** Port to listen on. 0 selects a free port. */
  port: number
  /** The key that `answer` requires from clients. */
  key: string | undefined
  /** Handles a request. If it rejects, the connection is closed. */
  answer(incoming: IncomingMessage, response: ServerResponse): Promise<void>
  onProblem(error: unknown): void
}

/**
 * Listens for HTTP requests. Throws `UsageError` if the port is taken, or if other machines could connect without a
 * key.
 */
export async function startLocalServer(
  options: LocalServerOptions,
): Promise<{ server: Server; origin: string }> {
  const { name, host, key, answer, onProblem } = options
  if (key === undefined && !isLoopback(host))
    throw new UsageError(`${name} accepts connections from other machines on ${host}. Set a key with --key.`)
  const server = createServer((incoming, response) => {
    // A client may disconnect at any time. This is not an error.
    incoming.on("error", () => response.destroy())
    response.on("error", () => response.destroy())
    answer(incoming, response).catch((error: unknown) => {
      onProblem(error)
      response.destroy()
    })
  })
  const port = await listen(server, options)
  // For example, no file descriptor is left for another connection.
  server.on("error", onProblem)
  return { server, origin: `http://${hostInUrl(host)}:${port}` }
}

/** Starts listening and returns the port. */
async function listen(server: Server, { name, host, port }: LocalServerOptions): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  server.listen(port, host, resolve)
  try {
    await promise
  } catch (error) {
    const why = systemCode(error) === "EADDRINUSE" ? "the port is taken" : errorMessage(error)
    throw new UsageError(
      `${name} cannot listen on ${host}:${port}: ${why}. Choose another port with --port.`,
      error,
    )
  }
  server.off("error", reject)
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : port
}

/** Hosts that refer to this machine, as they appear in URLs. */
export const loopbackHosts: readonly string[] = ["127.0.0.1", "localhost", "[::1]"]

/** Returns true for a listening address that only this machine can reach. */
export function isLoopback(address: string): boolean {
  return loopbackHosts.includes(hostInUrl(address))
}

/** Returns true if an `Origin` header names a page on this machine. Any other value, such as `null`, returns false. */
export function isLoopbackOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.origin === origin && loopbackHosts.includes(url.hostname)
}

/** Formats an address for a URL: puts IPv6 addresses in brackets. */
export function hostInUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address
}

/** Returns true if an `Authorization` header contains the key as a `Bearer` token. Compares in constant time. */
export function isAuthorized(authorization: string | null | undefined, key: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${key}`))
}
