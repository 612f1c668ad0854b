import type { Server } from "node:net"
import { errorMessage, systemCode, UsageError } from "./errors.ts"

/**
 * Listens, and returns the port: any free one for 0. Throws `UsageError`, which names the server as `name` does, where
 * the port is taken or may not be had.
 */
export async function listen(
  server: Server,
  { name, host, port }: { name: string; host: string; port: number },
): Promise<number> {
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
