import { createServer } from "node:http"
import { orAbort } from "../../../util/abort.ts"
import { TackleError } from "../../../util/errors.ts"

/** Where the browser comes back to. */
export interface Callback extends AsyncDisposable {
  /** Address that is given to the server. */
  url: string
  /** Waits for it. Throws `TackleError` where the server sent an error, and the signal's reason. */
  answer(signal: AbortSignal): Promise<URLSearchParams>
}

/**
 * Listens on 127.0.0.1, on the port or any that is free. Only an answer with our `state` counts; all others are turned
 * away. Rejects where the port is taken.
 */
export async function listenForCallback({ port, state }: { port: number; state: string }): Promise<Callback> {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>()
  const server = createServer((request, response) => {
    // Anybody on this machine may ask for what is no address.
    const asked = URL.parse(request.url ?? "/", "http://127.0.0.1")
    const ours = asked?.pathname === "/callback" && asked.searchParams.get("state") === state
    response.writeHead(ours ? 200 : 404, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
    })
    response.end(ours ? "You can close this page and go back to Tackle.\n" : "There is nothing here.\n")
    if (ours) resolve(asked.searchParams)
  })
  await new Promise<void>((listening, failed) => {
    server.once("error", failed)
    server.listen(port, "127.0.0.1", listening)
  })
  const address = server.address()
  const bound = typeof address === "object" ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${bound}/callback`,
    async answer(signal) {
      const params = await orAbort(promise, signal)
      if (!params.has("code")) {
        throw new TackleError(
          `The server did not sign you in (${params.get("error") ?? "it sent no code"}).`,
          {
            code: "mcp.sign-in-refused",
            recoverable: false,
          },
        )
      }
      return params
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
