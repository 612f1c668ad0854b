import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { errorMessage, systemCode, UsageError } from "./errors.ts"
import { hostInUrl, isLoopback } from "./loopback.ts"

/** Where it listens, and who answers. */
export interface LocalServerOptions {
  /** Begins the errors: `The gateway`. */
  name: string
  /** Any other address than this machine's own needs a key. */
  host: string
  /** 0: any free one. */
  port: number
  /** What `answer` asks of clients. */
  key: string | undefined
  /** Where it rejects, the connection is ended. */
  answer(incoming: IncomingMessage, response: ServerResponse): Promise<void>
  onProblem(error: unknown): void
}

/** Listens for HTTP requests. Throws `UsageError` where others could reach it without a key, or the port may not be had. */
export async function startLocalServer(
  options: LocalServerOptions,
): Promise<{ server: Server; origin: string }> {
  const { name, host, key, answer, onProblem } = options
  if (key === undefined && !isLoopback(host))
    throw new UsageError(`${name} can be reached by others on ${host}, so it needs a key: --key.`)
  const server = createServer((incoming, response) => {
    // A client that goes away is an ordinary end of an exchange.
    incoming.on("error", () => response.destroy())
    response.on("error", () => response.destroy())
    answer(incoming, response).catch((error: unknown) => {
      onProblem(error)
      response.destroy()
    })
  })
  const port = await listen(server, options)
  // Such as no descriptors left for one more connection.
  server.on("error", onProblem)
  return { server, origin: `http://${hostInUrl(host)}:${port}` }
}

/** Returns the port. */
async function listen(server: Server, { name, host, port }: LocalServerOptions): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  server.listen(port, host, resolve)
  try {
    await promise
  } catch (error) {
    const why = systemCode(error) === "EADDRINUSE" ? "the port is taken" : errorMessage(error)
    throw new UsageError(
      `${name} cannot listen on ${host}:${port}: ${why}. Choose another with --port.`,
      error,
    )
  }
  server.off("error", reject)
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : port
}
